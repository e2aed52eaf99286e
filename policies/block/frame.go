package block

import "encoding/binary"

const (
	messageMark = 1
	fieldMark   = 2
)

// AppendMessage appends one chat message to a rendered prompt: a mark, and role
// and content each after its length, so that no content can pass for the end of
// a message. The rendering of a list of messages is a prefix of the rendering of
// any longer list that begins with them.
func AppendMessage(dst []byte, role, content string) []byte {
	return appendPair(append(dst, messageMark), role, content)
}

// AppendField appends what changes the prompt and is no message, such as a
// request's tools, under a name of its own.
func AppendField(dst []byte, name, value string) []byte {
	return appendPair(append(dst, fieldMark), name, value)
}

func appendPair(dst []byte, a, b string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(a)))
	dst = append(dst, a...)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}
