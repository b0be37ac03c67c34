package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
)

func TestOptionsOfDHCPv6(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	asked := dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionDomainSearchList, dhcpv6.OptionSNTPServerList,
		dhcpv6.OptionNTPServer, dhcpv6.OptionInformationRefreshTime)
	got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeInformationRequest, asked))
	for code, want := range map[dhcpv6.OptionCode][]byte{
		dhcpv6.OptionDNSRecursiveNameServer: fromHex("fd000001000000000000000000000053"),
		dhcpv6.OptionDomainSearchList:       []byte("\x07example\x03org\x00\x01a\x07example\x03org\x00"),
		dhcpv6.OptionSNTPServerList:         fromHex("fd000001000000000000000000000123"),
		dhcpv6.OptionNTPServer:              fromHex("0001 0010 fd000001000000000000000000000123"), // RFC 5908
		dhcpv6.OptionInformationRefreshTime: fromHex("00000258"),
	} {
		if option := got.GetOneOption(code); option == nil || !bytes.Equal(option.ToBytes(), want) {
			t.Errorf("option %s is %v", code, option)
		}
	}
	if plain := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeInformationRequest)); len(plain.Options.Options) != 2 {
		t.Errorf("options that were not requested: %s", plain)
	}
}

// As many options as a pool may have, of the greatest length, do not fit into a frame.
func TestOptionsOfDHCPv6ThatDoNotFitIntoAnAnswerAreLeftOut(t *testing.T) {
	w := newWorld(t)
	var options []string
	asked := []dhcpv6.OptionCode{dhcpv6.OptionDNSRecursiveNameServer}
	for code := range 16 {
		asked = append(asked, dhcpv6.OptionCode(100+code))
		options = append(options, fmt.Sprintf(`{"code":%d,"value":"%s"}`, 100+code, strings.Repeat("ab", 255)))
	}
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"options":{"id":"o1","dns":["fd00:1::53"],"dhcp6":[`+strings.Join(options, ",")+`]}}`,
		`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o1"}]}`)
	got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeRequest, serverID(ownDUID), iaOf(1), dhcpv6.OptRequestedOption(asked...)))
	if got.GetOneOption(dhcpv6.OptionDNSRecursiveNameServer) == nil || got.GetOneOption(104) == nil || got.GetOneOption(105) != nil {
		t.Fatalf("got %s", got)
	}
	if size := len(got.ToBytes()); size > maxAnswer6 || size+4+255 <= maxAnswer6 {
		t.Fatalf("%d bytes", size)
	}
}
