package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// expression adds one to a rule, with the attributes that its kind has.
func (a attributes) expression(kind string, of attributes) attributes {
	return a.nested(unix.NFTA_LIST_ELEM, attributes{}.text(unix.NFTA_EXPR_NAME, kind).nested(unix.NFTA_EXPR_DATA, of))
}

func expressionsOf(one rule, mac []byte) (list attributes, err error) {
	for _, each := range one.Matches {
		if list, err = appendMatch(list, each, mac); err != nil {
			return nil, err
		}
	}
	if one.Counts != "" {
		of := attributes{}.number(unix.NFTA_OBJREF_IMM_TYPE, unix.NFT_OBJECT_COUNTER).text(unix.NFTA_OBJREF_IMM_NAME, one.Counts)
		list = list.expression("objref", of)
	}
	target, isGoto := strings.CutPrefix(one.Verdict, "goto ")
	var code int32
	switch {
	case isGoto:
		code = unix.NFT_GOTO
	case one.Verdict == "accept":
		code = nfAccept
	case one.Verdict == "drop":
		code = nfDrop
	default:
		return nil, fmt.Errorf("unknown verdict %q", one.Verdict)
	}
	verdict := attributes{}.number(unix.NFTA_VERDICT_CODE, uint32(code))
	if isGoto {
		verdict = verdict.text(unix.NFTA_VERDICT_CHAIN, target)
	}
	of := attributes{}.number(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
	of = of.nested(unix.NFTA_IMMEDIATE_DATA, attributes{}.nested(unix.NFTA_DATA_VERDICT, verdict))
	return list.expression("immediate", of), nil
}

func appendMatch(list attributes, m match, mac []byte) (attributes, error) {
	list, err := appendLoad(list, m)
	if err != nil {
		return nil, err
	}
	switch m.Op {
	case "in", "not in":
		of := attributes{}.text(unix.NFTA_LOOKUP_SET, m.Value).number(unix.NFTA_LOOKUP_SREG, register)
		if m.Op == "not in" {
			of = of.number(unix.NFTA_LOOKUP_FLAGS, unix.NFT_LOOKUP_F_INV)
		}
		return list.expression("lookup", of), nil
	case "delete":
		of := attributes{}.text(unix.NFTA_DYNSET_SET_NAME, m.Value).number(unix.NFTA_DYNSET_OP, dynsetDelete)
		return list.expression("dynset", of.number(unix.NFTA_DYNSET_SREG_KEY, register)), nil
	}
	op, known := comparisons[m.Op]
	compared := mac
	if m.Value != ownMAC {
		compared, err = bytesOf(m.Value, int(m.Length))
	}
	if !known || err != nil {
		return nil, errors.Join(fmt.Errorf("unknown comparison of %s: %q", m.Name, m.Op), err)
	}
	of := attributes{}.number(unix.NFTA_CMP_SREG, register).number(unix.NFTA_CMP_OP, op).nested(unix.NFTA_CMP_DATA, value(compared))
	return list.expression("cmp", of), nil
}

// appendLoad adds the expressions that put a field into the register.
func appendLoad(list attributes, m match) (attributes, error) {
	if m.Header == "l4proto" {
		of := attributes{}.number(unix.NFTA_META_KEY, unix.NFT_META_L4PROTO).number(unix.NFTA_META_DREG, register)
		return list.expression("meta", of), nil
	}
	base, known := headers[m.Header]
	if !known || m.Length == 0 || m.Length > 16 {
		return nil, fmt.Errorf("unknown field %s: header %q, length %d", m.Name, m.Header, m.Length)
	}
	of := attributes{}.number(unix.NFTA_PAYLOAD_DREG, register).number(unix.NFTA_PAYLOAD_BASE, base)
	list = list.expression("payload", of.number(unix.NFTA_PAYLOAD_OFFSET, m.Offset).number(unix.NFTA_PAYLOAD_LEN, m.Length))
	if m.Mask == "" {
		return list, nil
	}
	mask, err := bytesOf(m.Mask, int(m.Length))
	if err != nil {
		return nil, err
	}
	of = attributes{}.number(unix.NFTA_BITWISE_SREG, register).number(unix.NFTA_BITWISE_DREG, register)
	of = of.number(unix.NFTA_BITWISE_LEN, m.Length).nested(unix.NFTA_BITWISE_MASK, value(mask))
	return list.expression("bitwise", of.nested(unix.NFTA_BITWISE_XOR, value(make([]byte, m.Length)))), nil
}

func bytesOf(digits string, length int) ([]byte, error) {
	value, err := hex.DecodeString(digits)
	if err == nil && len(value) != length {
		err = fmt.Errorf("%q has %d bytes instead of %d", digits, len(value), length)
	}
	return value, err
}
