"""Parts of figures: forests, bars, levels, flows; no study is named here."""
