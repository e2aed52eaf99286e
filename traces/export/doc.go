// Package export writes rows for other programs: CSV, JSON lines and Parquet.
//
// Column names and order are those of traces.Columns. What is not known is an
// empty field in CSV, an absent key in JSON and null in Parquet. If the rows end
// in an error, as those of a truncated trace do, everything before it is written
// as a whole file, and the error is returned with the number of rows.
//
// Block ids are whole numbers of up to 64 bits, and those of most traces are
// above 2^53. In CSV and JSON they are plain numbers: a program that keeps
// numbers as 64-bit floating point, as JavaScript, jq and spreadsheets do, rounds
// them and takes different blocks for equal. Read them as integers, or use
// Parquet, where the column is of unsigned 64-bit integers.
//
// Parquet goes through github.com/parquet-go/parquet-go because it keeps the
// binary small: a stripped program that reads and writes Arrow streams is 5.7 MB,
// 11.4 MB with it, and 35.2 MB with Arrow's own pqarrow. It is a package apart so
// that only the command carries it.
package export
