"""Linear classes over one set of documents, solved in the dual with a certificate."""
