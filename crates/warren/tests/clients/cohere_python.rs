//! The `cohere` package of PyPI.

use crate::sdk::scenarios;

scenarios!("cohere_python.py", media: [rerank, rerank_first_version, rerank_async, errors]);
