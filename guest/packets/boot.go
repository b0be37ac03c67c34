package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
)

const (
	maxBootEntries, maxBootFile, maxBootURL = 16, 255, 320
	maxBootParameters, maxBootParameter     = 4, 64
	maxArchitectures                        = 8

	pxeClient, httpClient   = "PXEClient", "HTTPClient"
	enterpriseIntel         = 343
	optionTFTPServerAddress = dhcpv4.GenericOptionCode(150)
	optionEtherboot         = dhcpv4.GenericOptionCode(175)
	pxeServer               = 4011
)

// Boot servers are not discovered: the client loads the file of this message (PXE 2.1, PXE_DISCOVERY_CONTROL). Firmware
// that finds option 60 without it asks a boot server at port 4011.
var pxeDiscoveryOff = []byte{6, 1, 8, 255}

// bootEntry is a file that clients load over the network. A client gets the first one that fits.
type bootEntry struct {
	IPXE          bool       `json:"ipxe"`          // for iPXE alone
	Architectures []uint16   `json:"architectures"` // RFC 4578, section 2.1; none: all
	Server        netip.Addr `json:"server"`        // of TFTP, IPv4
	File          string     `json:"file"`          // for DHCPv4: a path on the server, or a URL
	URL           string     `json:"url"`           // for DHCPv6
	Parameters    []string   `json:"parameters"`    // for DHCPv6
}

func (e bootEntry) file() string { return e.File }
func (e bootEntry) url() string  { return e.URL }

func validateBoot(entries []bootEntry) error {
	if len(entries) > maxBootEntries {
		return fmt.Errorf("%d boot files, more than %d", len(entries), maxBootEntries)
	}
	isLong := func(parameter string) bool { return len(parameter) > maxBootParameter }
	for index, each := range entries {
		switch {
		case len(each.File) > maxBootFile || len(each.URL) > maxBootURL || len(each.Architectures) > maxArchitectures:
			return fmt.Errorf("boot[%d] is too long", index)
		case len(each.Parameters) > maxBootParameters || slices.ContainsFunc(each.Parameters, isLong):
			return fmt.Errorf("boot[%d]: parameters are too long", index)
		}
	}
	return nil
}

// bootClient is what a client says about itself.
type bootClient struct {
	isIPXE        bool
	class         string // pxeClient, httpClient or none
	architectures []byte // two bytes each
}

func bootClientOf4(m *dhcpv4.DHCPv4) bootClient {
	return bootClient{
		isIPXE:        isIPXE(m.Options.Get(dhcpv4.OptionUserClassInformation)) || m.Options.Has(optionEtherboot),
		class:         bootClassOf(m.Options.Get(dhcpv4.OptionClassIdentifier)),
		architectures: m.Options.Get(dhcpv4.OptionClientSystemArchitectureType),
	}
}

func bootClientOf6(m *dhcpv6.Message) bootClient {
	get := func(code dhcpv6.OptionCode) []byte {
		if option := m.GetOneOption(code); option != nil {
			return option.ToBytes()
		}
		return nil
	}
	class := get(dhcpv6.OptionVendorClass)
	return bootClient{
		isIPXE:        isIPXE(get(dhcpv6.OptionUserClass)),
		class:         bootClassOf(class[min(6, len(class)):]), // behind enterprise number and length
		architectures: get(dhcpv6.OptionClientArchType),
	}
}

// isIPXE returns whether a user class is that of iPXE, which writes it with or without a length.
func isIPXE(class []byte) bool { return bytes.Contains(class, []byte("iPXE")) }

func bootClassOf(vendorClass []byte) string {
	for _, each := range []string{pxeClient, httpClient} {
		if bytes.HasPrefix(vendorClass, []byte(each)) {
			return each
		}
	}
	return ""
}

// find returns the first entry that fits and has a location that the client can load; nil if there is none.
func (c bootClient) find(entries []bootEntry, location func(bootEntry) string) *bootEntry {
	for index, each := range entries {
		isRight := len(each.Architectures) == 0 || slices.ContainsFunc(each.Architectures, c.hasArchitecture)
		if isRight && (c.isIPXE || !each.IPXE) && location(each) != "" && c.canLoad(location(each)) {
			return &entries[index]
		}
	}
	return nil
}

func (c bootClient) hasArchitecture(architecture uint16) bool {
	for each := range slices.Chunk(c.architectures, 2) {
		if len(each) == 2 && binary.BigEndian.Uint16(each) == architecture {
			return true
		}
	}
	return false
}

func (c bootClient) canLoad(location string) bool {
	isHTTP := strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://")
	return isHTTP || c.class != httpClient
}

// addBoot4 names the file that a client loads: that of its VM, or that of the pool. The same holds for the server.
func (r *responder) addBoot4(to *answer4, request *dhcpv4.DHCPv4, ofVM []option) {
	client := bootClientOf4(request)
	var file, name string
	var server netip.Addr
	if entry := client.find(r.config.Boot, bootEntry.file); entry != nil {
		file, server = entry.File, entry.Server
	}
	for _, each := range ofVM {
		switch each.Code {
		case dhcpv4.OptionBootfileName.Code():
			file = string(each.Value)
		case dhcpv4.OptionTFTPServerName.Code():
			name = string(each.Value)
			server, _ = netip.ParseAddr(name)
		}
	}
	if file != "" && !client.canLoad(file) {
		return
	}
	if isHost(server, 4) {
		name = server.String()
		to.reply.ServerIPAddr = server.AsSlice()
		to.add(optionTFTPServerAddress, server.AsSlice())
	} else if len(name) < 64 {
		to.reply.ServerHostName = name
	}
	if name != "" {
		to.add(dhcpv4.OptionTFTPServerName, []byte(name))
	}
	if file == "" {
		return
	}
	if len(file) < 128 {
		to.reply.BootFileName = file
	}
	to.add(dhcpv4.OptionBootfileName, []byte(file))
	if client.class != "" {
		to.put(dhcpv4.OptionClassIdentifier, []byte(client.class))
		if id := request.Options.Get(dhcpv4.OptionClientMachineIdentifier); len(id) == 17 {
			to.put(dhcpv4.OptionClientMachineIdentifier, id)
		}
	}
	if client.class == pxeClient {
		to.put(dhcpv4.OptionVendorSpecificInformation, pxeDiscoveryOff)
	}
}

// addBoot6 does so for DHCPv6 (RFC 5970). A VM has no options of DHCPv6: its file counts if it is a URL.
func (r *responder) addBoot6(request *dhcpv6.Message, ofVM []option, add, put func(dhcpv6.Option)) {
	client := bootClientOf6(request)
	var url string
	var parameters []string
	if entry := client.find(r.config.Boot, bootEntry.url); entry != nil {
		url, parameters = entry.URL, entry.Parameters
	}
	for _, each := range ofVM {
		if file := string(each.Value); each.Code == dhcpv4.OptionBootfileName.Code() && strings.Contains(file, "://") {
			url, parameters = file, nil
		}
	}
	if url == "" || !client.canLoad(url) {
		return
	}
	add(dhcpv6.OptBootFileURL(url))
	if len(parameters) > 0 {
		add(dhcpv6.OptBootFileParam(parameters...))
	}
	if client.class == httpClient { // else it takes no URL
		put(&dhcpv6.OptVendorClass{EnterpriseNumber: enterpriseIntel, Data: [][]byte{[]byte(httpClient)}})
	}
}

// isProxyAnswer returns whether a proxy DHCP server sent a message: it names boot files, and gives no addresses. What it
// sends from port 4011 may have the address that the client has already.
func isProxyAnswer(m *dhcpv4.DHCPv4, from netip.AddrPort) bool {
	kind := m.MessageType()
	isAnswer := kind == dhcpv4.MessageTypeOffer || kind == dhcpv4.MessageTypeAck
	isProxy := m.YourIPAddr.IsUnspecified() || from.Port() == pxeServer
	return isAnswer && isProxy && bootClassOf(m.Options.Get(dhcpv4.OptionClassIdentifier)) != ""
}
