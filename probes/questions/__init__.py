"""Anyone's question: a study in a folder, of a declared design, a text with slots and a form of answers."""
