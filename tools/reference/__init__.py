"""The trainers of the reference models: corpora, and a program for each kind of model."""
