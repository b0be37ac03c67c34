package main

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
)

// beNamed gives the guest names and options of its own.
func (w *world) beNamed(dhcp4 string) {
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},`+
		`"options":"o1","hostname":"web-1","fqdn":"web-1.example.org","dhcp4":[`+dhcp4+`]}]}`)
}

func TestGuestIsToldItsHostnameIfItAsks(t *testing.T) {
	w := newWorld(t)
	w.beNamed("")
	asking := dhcpv4.WithOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionHostName))
	if got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, asking)); got.HostName() != "web-1" {
		t.Fatalf("got %s", got.Summary())
	}
	if got := w.expectReply(discover(guestMAC)); got.Options.Has(dhcpv4.OptionHostName) {
		t.Fatalf("got %s", got.Summary())
	}
}

func TestGuestIsToldItsFullNameIfItSendsOne(t *testing.T) {
	encoded := "\x05web-1\x07example\x03org\x00"
	for _, row := range []struct {
		sent, want string
	}{
		{"\x00\x00\x00other", "\x08\xff\xffweb-1.example.org"},
		{"\x01\x00\x00other", "\x0a\xff\xffweb-1.example.org"}, // we override the wish that we update DNS
		{"\x04\x00\x00\x05other", "\x0c\xff\xff" + encoded},
		{"\x05\x00", ""},
		{"", ""},
	} {
		w := newWorld(t)
		w.beNamed("")
		frame := discover(guestMAC)
		if row.sent != "" {
			frame = fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionFQDN, []byte(row.sent))))
		}
		if got := w.expectReply(frame).Options.Get(dhcpv4.OptionFQDN); string(got) != row.want {
			t.Errorf("%q: got %q, not %q", row.sent, got, row.want)
		}
	}
	w := newWorld(t)
	w.beNamed("")
	sent := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionFQDN, OptionData: []byte("\x01\x05other")}
	asking := dhcpv6.OptRequestedOption(dhcpv6.OptionFQDN)
	for _, row := range []struct {
		options []dhcpv6.Option
		want    string
	}{
		{[]dhcpv6.Option{sent, asking}, "\x06" + encoded},
		{[]dhcpv6.Option{&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionFQDN, OptionData: []byte("\x00\x05other")}, asking}, "\x04" + encoded},
		{[]dhcpv6.Option{sent}, ""}, // RFC 4704, section 6: only if the client sends it and asks for it
		{[]dhcpv6.Option{asking}, ""},
	} {
		got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeInformationRequest, row.options...)).GetOneOption(dhcpv6.OptionFQDN)
		if (got == nil) != (row.want == "") || got != nil && string(got.ToBytes()) != row.want {
			t.Errorf("%v: got %v, not %q", row.options, got, row.want)
		}
	}
}

func TestGuestGetsOptionsOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.beNamed(`{"code":67,"value":"` + "6e65742e656669" + `"},{"code":66,"value":"31302e312e302e39"},{"code":42,"value":"0a010009"},{"code":224,"value":"00ff"}`)
	asking := dhcpv4.WithOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionBootfileName, dhcpv4.OptionTFTPServerName, dhcpv4.OptionNTPServers, dhcpv4.GenericOptionCode(224)))
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, asking))
	if got.BootFileNameOption() != "net.efi" || got.TFTPServerName() != "10.1.0.9" || !got.NTPServers()[0].Equal(net.IP{10, 1, 0, 9}) || len(got.NTPServers()) != 1 {
		t.Fatalf("got %s", got.Summary())
	}
	if value := got.Options.Get(dhcpv4.GenericOptionCode(224)); !bytes.Equal(value, []byte{0, 255}) {
		t.Fatalf("option 224 is %v", value)
	}
	if got := w.expectReply(discover(guestMAC)); got.Options.Has(dhcpv4.OptionBootfileName) {
		t.Fatalf("got %s", got.Summary())
	}
}

func TestOptionsOfAPoolReachItsGuests(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"options":{"id":"o3","dhcp4":[{"code":150,"value":"0a010009"},{"code":67,"value":"61"}]}}`, `{"fresh":{"forMs":30000}}`,
		`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o3","dhcp4":[{"code":67,"value":"62"}]}]}`)
	asking := dhcpv4.WithOption(dhcpv4.OptParameterRequestList(dhcpv4.GenericOptionCode(150), dhcpv4.OptionBootfileName))
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, asking))
	if !bytes.Equal(got.Options.Get(dhcpv4.GenericOptionCode(150)), []byte{10, 1, 0, 9}) || got.BootFileNameOption() != "b" {
		t.Fatalf("got %s", got.Summary())
	}
	for _, code := range []string{"0", "1", "3", "50", "54", "61", "82", "121", "249", "255"} {
		if _, err := parseCommand([]byte(`{"options":{"id":"o3","dhcp4":[{"code":` + code + `,"value":"61"}]}}`)); err == nil {
			t.Errorf("option %s is accepted", code)
		}
	}
	long := strings.Repeat(`,{"code":200,"value":"`+strings.Repeat("61", 255)+`"}`, 1)[1:]
	for code := 201; code < 204; code++ {
		long += strings.Replace(","+long[:strings.Index(long, "}")+1], "200", strconv.Itoa(code), 1)
	}
	if _, err := parseCommand([]byte(`{"options":{"id":"o3","dhcp4":[` + long + `]}}`)); err == nil {
		t.Error("1,028 bytes are accepted")
	}
}

func TestOptionsOfATenantAreBounded(t *testing.T) {
	value := func(bytes int) string { return `"` + strings.Repeat("61", bytes) + `"` }
	for options, want := range map[string]string{
		`{"code":3,"value":"0a010001"}`:                                                 "option 3 is not for one guest",
		`{"code":54,"value":"0a010001"}`:                                                "option 54 is not for one guest",
		`{"code":249,"value":"000a010001"}`:                                             "option 249 is not for one guest",
		`{"code":255,"value":"00"}`:                                                     "option 255 is not for one guest",
		`{"code":67,"value":"61"},{"code":67,"value":"62"}`:                             "or is there twice",
		`{"code":67,"value":""}`:                                                        "option 67 has 0 bytes",
		`{"code":67,"value":` + value(256) + `}`:                                        "option 67 has 256 bytes",
		`{"code":67,"value":` + value(255) + `},{"code":66,"value":` + value(254) + `}`: "more than 512",
	} {
		_, err := parseCommand([]byte(`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"options":"o1","dhcp4":[` + options + `]}]}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", options, err)
		}
	}
	for _, name := range []string{`"hostname":"a.b"`, `"hostname":"` + strings.Repeat("a", 64) + `"`, `"fqdn":"a..b"`} {
		if _, err := parseCommand([]byte(`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"options":"o1",` + name + `}]}`)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestOptionsOfDHCPv6OfAPoolReachItsGuests(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"options":{"id":"o3","dhcp6":[{"code":103,"value":"61"}]}}`, `{"fresh":{"forMs":30000}}`,
		`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o3"}]}`)
	for _, asked := range []dhcpv6.OptionCode{103, 104} {
		got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeSolicit, dhcpv6.OptRequestedOption(asked), iaOf(1)))
		if option := got.GetOneOption(103); (option != nil) != (asked == 103) {
			t.Errorf("a client that asks for %d gets %v", asked, option)
		}
	}
	for _, code := range []string{"0", "1", "3", "14", "16", "20", "23", "24", "39", "59", "65536"} {
		if _, err := parseCommand([]byte(`{"options":{"id":"o3","dhcp6":[{"code":` + code + `,"value":"61"}]}}`)); err == nil {
			t.Errorf("option %s is accepted", code)
		}
	}
}
