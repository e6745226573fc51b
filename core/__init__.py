"""The framework: records, contracts, store, scheduler, runs, reports and the command line."""
