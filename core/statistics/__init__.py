"""Statistics of clustered answers: pure functions; no study is named here."""
