package main

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/insomniacslk/dhcp/dhcpv6"
)

// parseDHCP6 returns the message of a client; nil if it is not whole, or has more options than any client sends.
func parseDHCP6(d datagram) *dhcpv6.Message {
	if !d.from.Addr().IsLinkLocalUnicast() || len(d.payload) < 4 || messageNames6[dhcpv6.MessageType(d.payload[0])] == "" {
		return nil
	}
	options := 0
	for rest := d.payload[4:]; len(rest) >= 4; options++ {
		length := 4 + int(binary.BigEndian.Uint16(rest[2:]))
		if length > len(rest) || options == maxOptions6 {
			return nil
		}
		rest = rest[length:]
	}
	message := &dhcpv6.Message{MessageType: dhcpv6.MessageType(d.payload[0]), TransactionID: dhcpv6.TransactionID(d.payload[1:4])}
	err := message.Options.FromBytesWithParser(d.payload[4:], parseOption6)
	if err != nil || countIAs(message) > maxIAs {
		return nil
	}
	return message
}

func countIAs(m *dhcpv6.Message) int {
	return len(m.Options.IANA()) + len(m.Options.IATA()) + len(m.Options.IAPD())
}

// fixedBytes6 has the bytes of an option before the options in it.
var fixedBytes6 = map[dhcpv6.OptionCode]int{dhcpv6.OptionIANA: 12, dhcpv6.OptionIATA: 4, dhcpv6.OptionIAPD: 12, dhcpv6.OptionIAAddr: 24}

// maxDUID is that of RFC 8415, section 11.1, with the type. A longer one leaves no room in an answer.
const maxDUID = 2 + 128

var errLongDUID = errors.New("DUID is too long")

// parseOption6 parses the options that an answer depends on. Others stay bytes: the library expands compressed names, and
// those of one message can need 100 MB. So do DUIDs, which servers only compare (RFC 8415, section 11).
func parseOption6(code dhcpv6.OptionCode, b []byte) (dhcpv6.Option, error) {
	if len(b) < fixedBytes6[code] {
		return nil, io.ErrUnexpectedEOF
	}
	if code == dhcpv6.OptionClientID && len(b) > maxDUID {
		return nil, errLongDUID
	}
	switch code {
	case dhcpv6.OptionORO:
		return dhcpv6.ParseOption(code, b)
	case dhcpv6.OptionIANA:
		ia := &dhcpv6.OptIANA{IaId: [4]byte(b)}
		return ia, ia.Options.FromBytesWithParser(b[12:], parseOption6)
	case dhcpv6.OptionIATA:
		return &dhcpv6.OptIATA{IaId: [4]byte(b)}, nil
	case dhcpv6.OptionIAPD:
		return &dhcpv6.OptIAPD{IaId: [4]byte(b)}, nil
	case dhcpv6.OptionIAAddr:
		return &dhcpv6.OptIAAddress{IPv6Addr: b[:16]}, nil
	}
	return &dhcpv6.OptionGeneric{OptionCode: code, OptionData: b}, nil
}
