// Package export writes rows for other programs: CSV, JSON lines and Parquet.
//
// Column names and order are those of traces.Columns. What is not known is an
// empty field in CSV, an absent key in JSON and null in Parquet. If the rows end
// in an error, as those of a truncated trace do, everything before it is written
// as a whole file, and the error is returned with the number of rows.
//
// Parquet goes through github.com/parquet-go/parquet-go because it keeps the
// binary small: a stripped program that reads and writes Arrow streams is 5.7 MB,
// 11.4 MB with it, and 35.2 MB with Arrow's own pqarrow. It is a package apart so
// that only the command carries it.
package export
