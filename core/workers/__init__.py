"""One run on several processes: an engine starts them, and the driver asks through adapters that look like any other.

The driver alone has the scheduler, the store, the budget and the report. A worker holds the models of one device, and
knows neither trials nor keys. An engine is one class (`engine.py`): it starts a worker and carries frames of bytes.
"""
