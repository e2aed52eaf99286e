package traces

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// chunkRows is how many rows are decoded at a time, column by column: few enough
// to stay in cache.
const chunkRows = 256

// readable reports whether a column of the kind can be read from the type.
// Other programs that rewrite a trace may turn dictionaries into plain text.
func readable(k Kind, t arrow.DataType) bool {
	if k == KindText || k == KindEnum {
		if d, ok := t.(*arrow.DictionaryType); ok {
			t = d.ValueType
		}
		return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING
	}
	if k == KindList {
		l, ok := t.(arrow.ListLikeType)
		return ok && (t.ID() == arrow.LIST || t.ID() == arrow.LARGE_LIST) && l.Elem().ID() == arrow.UINT64
	}
	return t.ID() == arrowType(k).ID()
}

// decode appends the batch's rows from index from, at most chunkRows of them. A
// batch may hold anything: an index out of its arrays is corruption, not a bug,
// so a panic of the array library is turned into an error.
func (s *streamReader[T]) decode(batch arrow.RecordBatch, from int, rows []T) (_ []T, err error) {
	name := ""
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("column %s: %v", name, p)
		}
	}()
	for range min(chunkRows, int(batch.NumRows())-from) {
		rows = append(rows, s.blank())
	}
	for i := range s.columns {
		if s.field[i] < 0 {
			continue
		}
		name = s.columns[i].Name
		if err := decodeColumn(&s.columns[i], batch.Column(s.field[i]), from, rows); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// decodeColumn sets one field of the rows. Nulls leave the blank row's value.
func decodeColumn[T any](c *Column[T], values arrow.Array, from int, rows []T) error {
	switch v := values.(type) {
	case *array.Int64:
		for i := range rows {
			if v.IsValid(from + i) {
				*c.integer(&rows[i]) = v.Value(from + i)
			}
		}
	case *array.Int32:
		for i := range rows {
			if v.IsValid(from + i) {
				*c.small(&rows[i]) = v.Value(from + i)
			}
		}
	case *array.Boolean:
		for i := range rows {
			if v.IsValid(from + i) {
				*c.flag(&rows[i]) = v.Value(from + i)
			}
		}
	case array.ListLike:
		ids := v.ListValues().(*array.Uint64).Values()
		for i := range rows {
			if v.IsValid(from + i) {
				start, end := v.ValueOffsets(from + i)
				*c.list(&rows[i]) = ids[start:end:end]
			}
		}
	case *array.Dictionary:
		names := v.Dictionary().(array.StringLike)
		return decodeText(c, v, from, rows, func(i int) string { return names.Value(v.GetValueIndex(i)) })
	case array.StringLike:
		return decodeText(c, v, from, rows, v.Value)
	default:
		return fmt.Errorf("column %s is %s", c.Name, values.DataType())
	}
	return nil
}

func decodeText[T any](c *Column[T], values arrow.Array, from int, rows []T, value func(int) string) error {
	for i := range rows {
		if values.IsNull(from + i) {
			continue
		}
		if err := c.setText(&rows[i], value(from+i)); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
	}
	return nil
}
