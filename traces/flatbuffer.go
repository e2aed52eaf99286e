package traces

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The library trusts the lengths in a message's head (a flatbuffer) and reserves
// memory by them before it looks at what they count. So heads are checked here
// first: only the tables and vectors that it reserves memory for, by the slot
// numbers of Message.fbs and Schema.fbs of the Arrow format.
const (
	slotMessageType     = 1
	slotMessageHeader   = 2
	slotMessageBody     = 3
	slotMessageMetadata = 4

	slotSchemaFields   = 1
	slotSchemaMetadata = 2
	slotFieldChildren  = 5
	slotFieldMetadata  = 6

	slotBatchBuffers   = 2
	slotBatchVariadic  = 4
	slotDictionaryData = 1

	headerSchema     = 1
	headerDictionary = 2
	headerBatch      = 3

	maxFields     = 10000
	maxFieldDepth = 16
)

var errHead = errors.New("message head is broken")

// checkHead checks a message's head and returns the length of its body.
func checkHead(head []byte) (body int64, err error) {
	message, err := rootTable(head)
	if err != nil {
		return 0, err
	}
	if _, _, err := message.vector(slotMessageMetadata, 4); err != nil {
		return 0, err
	}
	if at, err := message.field(slotMessageBody, 8); err != nil {
		return 0, err
	} else if at > 0 {
		body = int64(binary.LittleEndian.Uint64(head[at:]))
	}
	if body < 0 || body > maxMessageBody {
		return 0, fmt.Errorf("message body of %d bytes, want 0 to %d", body, maxMessageBody)
	}
	return body, checkHeader(message)
}

func checkHeader(message table) error {
	at, err := message.field(slotMessageType, 1)
	if err != nil || at == 0 {
		return errHead
	}
	kind := message.b[at]
	header, ok, err := message.table(slotMessageHeader)
	if err != nil || !ok {
		return errHead
	}
	switch kind {
	case headerSchema:
		left := maxFields
		if _, _, err := header.vector(slotSchemaMetadata, 4); err != nil {
			return err
		}
		return checkFields(header, slotSchemaFields, maxFieldDepth, &left)
	case headerDictionary:
		data, ok, err := header.table(slotDictionaryData)
		if err != nil || !ok {
			return errHead
		}
		return checkBatch(data)
	case headerBatch:
		return checkBatch(header)
	}
	return fmt.Errorf("message of kind %d, want schema, dictionary or batch", kind)
}

// checkFields walks the fields of a schema, or the children of a field. Fields
// may be shared, so it counts visits.
func checkFields(t table, slot, depth int, left *int) error {
	start, n, err := t.vector(slot, 4)
	if err != nil {
		return err
	}
	if n > 0 && depth == 0 {
		return fmt.Errorf("schema nests more than %d deep", maxFieldDepth)
	}
	for i := range n {
		if *left--; *left < 0 {
			return fmt.Errorf("schema has more than %d fields", maxFields)
		}
		field, err := t.at(start + 4*i)
		if err != nil {
			return err
		}
		if _, _, err := field.vector(slotFieldMetadata, 4); err != nil {
			return err
		}
		if err := checkFields(field, slotFieldChildren, depth-1, left); err != nil {
			return err
		}
	}
	return nil
}

// checkBatch checks that a batch claims no more variadic buffers than it has
// buffers.
func checkBatch(batch table) error {
	_, buffers, err := batch.vector(slotBatchBuffers, 16)
	if err != nil {
		return err
	}
	start, n, err := batch.vector(slotBatchVariadic, 8)
	if err != nil {
		return err
	}
	for i := range n {
		if binary.LittleEndian.Uint64(batch.b[start+8*i:]) > uint64(buffers) {
			return errHead
		}
	}
	return nil
}

// A table is a flatbuffer table at a position of b; every read is checked.
type table struct {
	b   []byte
	pos int64
}

func rootTable(b []byte) (table, error) { return table{b: b}.at(0) }

// at follows the offset stored at a position to a table.
func (t table) at(pos int64) (table, error) {
	if pos < 0 || pos+4 > int64(len(t.b)) {
		return table{}, errHead
	}
	to := pos + int64(binary.LittleEndian.Uint32(t.b[pos:]))
	if to+4 > int64(len(t.b)) {
		return table{}, errHead
	}
	return table{t.b, to}, nil
}

// field is the position of a slot's value of so many bytes, or 0 if it is absent.
func (t table) field(slot int, size int64) (int64, error) {
	vtable := t.pos - int64(int32(binary.LittleEndian.Uint32(t.b[t.pos:])))
	if vtable < 0 || vtable+4 > int64(len(t.b)) {
		return 0, errHead
	}
	entry := int64(4 + 2*slot)
	if int64(binary.LittleEndian.Uint16(t.b[vtable:])) < entry+2 {
		return 0, nil
	}
	if vtable+entry+2 > int64(len(t.b)) {
		return 0, errHead
	}
	offset := int64(binary.LittleEndian.Uint16(t.b[vtable+entry:]))
	if offset == 0 {
		return 0, nil
	}
	if t.pos+offset+size > int64(len(t.b)) {
		return 0, errHead
	}
	return t.pos + offset, nil
}

func (t table) table(slot int) (_ table, ok bool, err error) {
	at, err := t.field(slot, 4)
	if err != nil || at == 0 {
		return table{}, false, err
	}
	to, err := t.at(at)
	return to, err == nil, err
}

// vector is the position and length of a slot's vector of elements of the given
// size in bytes; an absent one is empty.
func (t table) vector(slot int, size int64) (start, n int64, err error) {
	at, err := t.field(slot, 4)
	if err != nil || at == 0 {
		return 0, 0, err
	}
	to, err := t.at(at)
	if err != nil {
		return 0, 0, err
	}
	n = int64(binary.LittleEndian.Uint32(t.b[to.pos:]))
	if to.pos+4+n*size > int64(len(t.b)) {
		return 0, 0, errHead
	}
	return to.pos + 4, n, nil
}
