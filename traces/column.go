package traces

// A Kind is how a column's values are stored.
type Kind uint8

// The kinds. Every kind but KindFlag may be null, which in Go is None, an empty
// text, or what the field's comment says.
const (
	KindInt   Kind = iota // int64
	KindSmall             // int32
	KindText              // UTF-8
	KindEnum              // UTF-8 from a small set, dictionary-encoded
	KindFlag              // true or false
	KindList              // list of uint64
)

// A Column is one column of a stream of T: its name, its unit ("ns", "tokens",
// "bytes", or "" for none) and where it lies in a row.
type Column[T any] struct {
	Name string
	Unit string
	Kind Kind

	integer func(*T) *int64
	small   func(*T) *int32
	none    int32 // of small: the value that is stored as null
	text    func(*T) *string
	get     func(*T) string        // of an enum that is not a string in Go
	set     func(*T, string) error // likewise
	flag    func(*T) *bool
	list    func(*T) *[]uint64
}

// Int is the value of a KindInt or KindSmall column, and whether it is known.
func (c *Column[T]) Int(row *T) (value int64, known bool) {
	if c.Kind == KindSmall {
		v := *c.small(row)
		return int64(v), v != c.none
	}
	v := *c.integer(row)
	return v, v != None
}

// Text is the value of a KindText or KindEnum column, and whether it is known.
func (c *Column[T]) Text(row *T) (value string, known bool) {
	if c.get != nil {
		return c.get(row), true
	}
	v := *c.text(row)
	return v, v != ""
}

// Flag is the value of a KindFlag column.
func (c *Column[T]) Flag(row *T) bool { return *c.flag(row) }

// List is the value of a KindList column; nil is unknown. It aliases the row.
func (c *Column[T]) List(row *T) []uint64 { return *c.list(row) }

func (c *Column[T]) setText(row *T, value string) error {
	if c.set != nil {
		return c.set(row, value)
	}
	*c.text(row) = value
	return nil
}

func intColumn[T any](name, unit string, at func(*T) *int64) Column[T] {
	return Column[T]{Name: name, Unit: unit, Kind: KindInt, integer: at}
}

func smallColumn[T any](name string, none int32, at func(*T) *int32) Column[T] {
	return Column[T]{Name: name, Kind: KindSmall, none: none, small: at}
}

func textColumn[T any](name string, kind Kind, at func(*T) *string) Column[T] {
	return Column[T]{Name: name, Kind: kind, text: at}
}

func flagColumn[T any](name string, at func(*T) *bool) Column[T] {
	return Column[T]{Name: name, Kind: KindFlag, flag: at}
}
