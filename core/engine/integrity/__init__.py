"""Whether an endpoint does what it is asked: draws that differ, limits that hold, one model from first to last."""
