package traces

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// The schemas of this package.
const (
	schemaTrace = "kvfleet.trace"
	schemaSteps = "kvfleet.steps"
)

// keyRows is the metadata key of the closing batch, which has no rows: how many
// rows the stream has.
const keyRows = "kvfleet.rows"

func arrowType(k Kind) arrow.DataType {
	switch k {
	case KindSmall:
		return arrow.PrimitiveTypes.Int32
	case KindText:
		return arrow.BinaryTypes.String
	case KindEnum:
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	case KindFlag:
		return arrow.FixedWidthTypes.Boolean
	case KindList:
		return arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint64)
	}
	return arrow.PrimitiveTypes.Int64
}

func arrowSchema[T any](schema string, columns []Column[T], m *Meta) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i := range columns {
		c := &columns[i]
		fields[i] = arrow.Field{Name: c.Name, Type: arrowType(c.Kind), Nullable: true}
		if c.Unit != "" {
			fields[i].Metadata = arrow.NewMetadata([]string{"unit"}, []string{c.Unit})
		}
	}
	keys, values := []string{keySchema, keyVersion}, []string{schema, Version}
	for _, kv := range m.KeyValues() {
		keys, values = append(keys, kv.Key), append(values, kv.Value)
	}
	meta := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields, &meta)
}
