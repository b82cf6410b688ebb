package hlo

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// value is one field's content: a number or bytes.
type value struct {
	number uint64
	bytes  []byte
}

// int is a number that is signed.
func (v value) int() int64 { return int64(v.number) }

// ints appends a repeated integer field, packed or not.
func (v value) ints(to []int64) ([]int64, error) {
	if v.bytes == nil {
		return append(to, int64(v.number)), nil
	}
	for b := v.bytes; len(b) > 0; {
		n, size := protowire.ConsumeVarint(b)
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		to, b = append(to, int64(n)), b[size:]
	}
	return to, nil
}

// fields calls f for every varint or length-delimited field of a message.
func fields(data []byte, f func(protowire.Number, value) error) error {
	for len(data) > 0 {
		num, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		var v value
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(data)
			if v.bytes == nil {
				v.bytes = []byte{}
			}
		default:
			if n = protowire.ConsumeFieldValue(num, kind, data); n >= 0 {
				data = data[n:]
				continue
			}
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(num, v); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// lists reads a message whose fields are lists of integers, by field number.
func lists(data []byte, into map[protowire.Number]*[]int64) error {
	return fields(data, func(num protowire.Number, v value) (err error) {
		if to := into[num]; to != nil {
			*to, err = v.ints(*to)
		}
		return err
	})
}

// numbers reads a message whose fields are integers, by field number.
func numbers(data []byte, into map[protowire.Number]*int64) error {
	return fields(data, func(num protowire.Number, v value) error {
		if to := into[num]; to != nil && v.bytes == nil {
			*to = v.int()
		}
		return nil
	})
}
