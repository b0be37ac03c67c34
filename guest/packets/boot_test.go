package main

import (
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
)

// ofVM gives the guest options of its own.
func (w *world) ofVM(options ...option) {
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	w.table.guests[guestMAC].dhcp4 = options
}

func pxe(class string, architecture byte) []dhcpv4.Modifier {
	return []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(class)),
		dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, architecture})),
		dhcpv4.WithOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionTFTPServerName, dhcpv4.OptionBootfileName, optionTFTPServerAddress)),
	}
}

func TestFileAndServerOfTheVMReplaceThoseOfThePool(t *testing.T) {
	w := newWorld(t)
	w.ofVM(option{67, hexBytes("own.efi")})
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, pxe("PXEClient:Arch:00007", 7)...))
	if got.BootFileName != "own.efi" || got.ServerIPAddr.String() != "10.1.0.8" || string(got.Options.Get(dhcpv4.OptionBootfileName)) != "own.efi" {
		t.Fatalf("with a file: %s", got.Summary())
	}
	w.ofVM(option{66, hexBytes("10.1.0.9")})
	got = w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, pxe("PXEClient:Arch:00007", 7)...))
	if got.BootFileName != "boot.efi" || got.ServerIPAddr.String() != "10.1.0.9" || hex.EncodeToString(got.Options.Get(optionTFTPServerAddress)) != "0a010009" {
		t.Fatalf("with the address of a server: %s", got.Summary())
	}
	w.ofVM(option{66, hexBytes("boot.example")})
	got = w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, pxe("PXEClient:Arch:00007", 7)...))
	if got.ServerHostName != "boot.example" || !got.ServerIPAddr.IsUnspecified() || got.Options.Has(optionTFTPServerAddress) {
		t.Fatalf("with the name of a server: %s", got.Summary())
	}
}

func TestURLOfTheVMIsThatOfDHCPv6(t *testing.T) {
	w := newWorld(t)
	asking := func() []byte {
		got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeSolicit, dhcpv6.OptRequestedOption(dhcpv6.OptionBootfileURL), iaOf(1)))
		if option := got.GetOneOption(dhcpv6.OptionBootfileURL); option != nil {
			return option.ToBytes()
		}
		return nil
	}
	w.ofVM(option{67, hexBytes("own.efi")})
	if got := asking(); got != nil {
		t.Fatalf("a path: %s", got)
	}
	w.ofVM(option{67, hexBytes("http://boot.example/own.efi")})
	if got := asking(); string(got) != "http://boot.example/own.efi" {
		t.Fatalf("a URL: %s", got)
	}
}

func TestOptionsOfThePoolDoNotReplaceTheBootFile(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(
		`{"fresh":{"forMs":30000}}`,
		`{"options":{"id":"o9","dhcp4":[{"code":43,"value":"0101"},{"code":67,"value":"78"}]}}`,
		`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o9"}]}`,
	)
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, pxe("PXEClient:Arch:00007", 7)...))
	if file, vendor := got.Options.Get(dhcpv4.OptionBootfileName), got.Options.Get(dhcpv4.OptionVendorSpecificInformation); string(file) != "boot.efi" || string(vendor) != string(pxeDiscoveryOff) {
		t.Fatalf("file %s, vendor options %x", file, vendor)
	}
}

// Without a file, a PXE client must not take us for its boot server.
func TestClassIsNotEchoedWithoutAFile(t *testing.T) {
	w := newWorld(t)
	w.ofVM()
	w.config.Boot = nil
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, pxe("PXEClient:Arch:00007", 7)...))
	if got.Options.Has(dhcpv4.OptionClassIdentifier) || got.Options.Has(dhcpv4.OptionVendorSpecificInformation) || got.BootFileName != "" {
		t.Fatal(got.Summary())
	}
}

// The frames are those of dnsmasq 2.90 with --dhcp-range=10.1.0.0,proxy: an OFFER, and two answers from port 4011.
func TestProxyDHCPServerIsNoForeignServer(t *testing.T) {
	text, err := os.ReadFile("testdata/proxy-answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, frame, _ := strings.Cut(strings.TrimSpace(line), " ")
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			b := fromHex(frame)
			w.hear(b)
			w.expectSeen()
			// one that gives an address is a server
			copy(b[etherLength+20:], []byte{0, 67})
			copy(b[etherLength+28+16:], []byte{10, 1, 0, 10})
			w.hear(b)
			w.expectSeen(seen{seenServer, mac(b[6:12]), netip.MustParseAddr("10.1.0.9")})
		})
	}
}
