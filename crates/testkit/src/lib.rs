//! For tests only: fake workers and backends, a whole daemon on port 0.
