package export

import (
	"io"

	"github.com/parquet-go/parquet-go"

	"kvfleet/traces"
)

// rowGroup is how many rows are written together; a reader skips by row group.
const rowGroup = 1 << 16

// Parquet writes the rows as a Parquet file compressed with Zstandard, the Meta
// as its key-value metadata. Enums are dictionary-encoded text, block ids a list
// of unsigned 64-bit integers.
func Parquet(rows traces.Source, m traces.Meta, w io.Writer) (int64, error) {
	columns := traces.Columns()
	options := []parquet.WriterOption{
		parquet.NewSchema("trace", parquetSchema(columns)),
		parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.CreatedBy("kvfleet", traces.Version, ""),
		parquet.KeyValueMetadata("schema_version", traces.Version),
	}
	for _, kv := range m.KeyValues() {
		options = append(options, parquet.KeyValueMetadata(kv.Key, kv.Value))
	}
	out := parquet.NewWriter(w, options...)
	var values parquet.Row
	n, err := each(rows, func(r *traces.Row) error {
		values = values[:0]
		for i := range columns {
			values = appendValues(values, &columns[i], i, r)
		}
		_, err := out.WriteRows([]parquet.Row{values})
		return err
	})
	return n, finish(err, out.Close)
}

func parquetSchema(columns []traces.Column[traces.Row]) parquet.Node {
	group := ordered{Group: parquet.Group{}}
	for i := range columns {
		c := &columns[i]
		var node parquet.Node
		switch c.Kind {
		case traces.KindInt:
			node = parquet.Optional(parquet.Int(64))
		case traces.KindSmall:
			node = parquet.Optional(parquet.Int(32))
		case traces.KindFlag:
			node = parquet.Leaf(parquet.BooleanType)
		case traces.KindList:
			node = parquet.Optional(parquet.List(parquet.Uint(64)))
		case traces.KindEnum:
			node = parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary))
		default:
			node = parquet.Optional(parquet.String())
		}
		group.Group[c.Name] = node
		group.names = append(group.names, c.Name)
	}
	return group
}

// ordered is a group that keeps its columns in the order of a trace; the
// library's own sorts them by name.
type ordered struct {
	parquet.Group
	names []string
}

func (g ordered) Fields() []parquet.Field {
	byName := make(map[string]parquet.Field, len(g.names))
	for _, f := range g.Group.Fields() {
		byName[f.Name()] = f
	}
	fields := make([]parquet.Field, len(g.names))
	for i, name := range g.names {
		fields[i] = byName[name]
	}
	return fields
}

// appendValues appends a column's values with their repetition and definition
// levels: one, or one per block id.
func appendValues(row parquet.Row, c *traces.Column[traces.Row], column int, r *traces.Row) parquet.Row {
	switch c.Kind {
	case traces.KindInt, traces.KindSmall:
		if v, known := c.Int(r); known {
			value := parquet.Int64Value(v)
			if c.Kind == traces.KindSmall {
				value = parquet.Int32Value(int32(v))
			}
			return append(row, value.Level(0, 1, column))
		}
	case traces.KindFlag:
		return append(row, parquet.BooleanValue(c.Flag(r)).Level(0, 0, column))
	case traces.KindList:
		return appendList(row, c.List(r), column)
	default:
		if v, known := c.Text(r); known {
			return append(row, parquet.ByteArrayValue([]byte(v)).Level(0, 1, column))
		}
	}
	return append(row, parquet.NullValue().Level(0, 0, column))
}

func appendList(row parquet.Row, ids []uint64, column int) parquet.Row {
	switch {
	case ids == nil:
		return append(row, parquet.NullValue().Level(0, 0, column))
	case len(ids) == 0:
		return append(row, parquet.NullValue().Level(0, 1, column))
	}
	for i, id := range ids {
		row = append(row, parquet.Int64Value(int64(id)).Level(min(i, 1), 2, column))
	}
	return row
}
