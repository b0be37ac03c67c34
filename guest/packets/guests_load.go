//go:build guests

package main

import (
	"encoding/binary"
	"errors"
	"log"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// closedLoop lets guests ask one after the other, a fixed number at one time, to measure how many a server answers. Frames are made by
// hand, so that the guests cost little beside the server. A guest is known by the transaction ID of its messages.
type closedLoop struct {
	mutex    sync.Mutex
	link     *packetLink
	of       dialog
	isBoot   bool // else renewals
	first    int  // of the guests that ask
	next     int
	sent     []sent // by number of the guest
	finished []bool
	results  loadResults
}

// sent is the last message of a guest that waits for an answer.
type sent struct {
	at    time.Time
	frame []byte
}

type loadResults struct {
	Exchanges int     `json:"exchanges"` // messages with their answers
	Seconds   float64 `json:"seconds"`
	Guests    int     `json:"guests"` // that got their address at least once
	Resent    int     `json:"resent"`
	Refused   int     `json:"refused"`
}

// answered is what an answer of a server says.
type answered struct {
	number int
	kind   answerKind
	server []byte // its identifier
}

type answerKind int

const (
	isOffer answerKind = iota
	isGiven
	isRefused
)

// dialog is DHCPv4 or DHCPv6.
type dialog interface {
	first(number int) []byte
	request(number int, server []byte) []byte
	renew(number int) []byte
	parse(frame []byte) (answered, bool)
}

// macOfGuest and the next two functions know what the table says about a guest.
func macOfGuest(number int) mac {
	return mac{2, 0xfe, 0, 0, byte(number >> 8), byte(number)}
}

func ipv4OfGuest(number int) []byte {
	return []byte{10, 80, byte(1 + number>>8), byte(number)}
}

func ipv6OfGuest(number int) []byte {
	return []byte{0xfd, 0, 0, 0x80, 13: 1, 14: byte(number >> 8), 15: byte(number)}
}

// runLoad measures for a time with so many guests, of which some ask at the same time.
func runLoad(name, what string, first, count, window int, duration time.Duration) (loadResults, error) {
	protocol, port, offset := unix.ETH_P_IP, uint32(dhcp4Client), uint32(etherLength+20+2)
	var of dialog = dialog4{}
	if what == "boot6" || what == "renew6" {
		protocol, port, offset, of = unix.ETH_P_IPV6, dhcp6Client, etherLength+40+2, dialog6{}
	} else if what != "boot4" && what != "renew4" {
		return loadResults{}, errors.New("-load is boot4, boot6, renew4 or renew6")
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return loadResults{}, err
	}
	link, err := listenTo(device, protocol, join(load(offset, 2), acceptIf(port)))
	if err != nil {
		return loadResults{}, err
	}
	if err := link.conn.SetPromiscuous(true); err != nil {
		return loadResults{}, err
	}
	running := &closedLoop{link: link, of: of, first: first, next: first, isBoot: what == "boot4" || what == "boot6", sent: make([]sent, count), finished: make([]bool, count)}
	began := time.Now()
	for range min(window, count-first) {
		running.begin()
	}
	go func() {
		log.Fatal(link.receive(func(frame []byte, _ checksums) { running.take(frame) }))
	}()
	for end := began.Add(duration); time.Now().Before(end); {
		time.Sleep(min(resendAfter/10, time.Until(end)))
		running.resend()
	}
	running.mutex.Lock() // until the program ends
	running.results.Seconds = time.Since(began).Seconds()
	return running.results, nil
}

// begin lets the next guest ask that does not wait.
func (l *closedLoop) begin() {
	for range l.sent[l.first:] {
		number := l.next
		if l.next++; l.next == len(l.sent) {
			l.next = l.first
		}
		if l.sent[number].frame != nil {
			continue
		}
		if l.isBoot {
			l.send(number, l.of.first(number))
		} else {
			l.send(number, l.of.renew(number))
		}
		return
	}
}

func (l *closedLoop) send(number int, frame []byte) {
	l.sent[number] = sent{time.Now(), frame}
	if err := l.link.send(frame); err != nil {
		log.Fatal(err)
	}
}

func (l *closedLoop) take(frame []byte) {
	got, ok := l.of.parse(frame)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !ok || got.number >= len(l.sent) || l.sent[got.number].frame == nil {
		return
	}
	l.results.Exchanges++
	switch got.kind {
	case isOffer:
		l.send(got.number, l.of.request(got.number, got.server))
		return
	case isGiven:
		if !l.finished[got.number] {
			l.finished[got.number] = true
			l.results.Guests++
		}
	case isRefused:
		l.results.Refused++
	}
	l.sent[got.number] = sent{}
	l.begin()
}

func (l *closedLoop) resend() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for number, each := range l.sent {
		if each.frame != nil && time.Since(each.at) > resendAfter {
			l.results.Resent++
			l.send(number, each.frame)
		}
	}
}

type dialog4 struct{}

func (dialog4) first(number int) []byte { return guestFrame4(number, 1, nil) }

func (dialog4) request(number int, server []byte) []byte {
	options := append([]byte{54, 4}, server...)
	return guestFrame4(number, 3, append(append(options, 50, 4), ipv4OfGuest(number)...))
}

func (dialog4) renew(number int) []byte {
	frame := guestFrame4(number, 3, nil)
	copy(frame[etherLength+28+12:], ipv4OfGuest(number)) // ciaddr; there is no checksum of UDP
	return frame
}

// guestFrame4 returns a message to all with the broadcast flag, so that no server needs to know MAC addresses first.
func guestFrame4(number int, kind byte, options []byte) []byte {
	from := macOfGuest(number)
	b := make([]byte, dhcp4Fixed, dhcp4LeastSize)
	b[0], b[1], b[2], b[10] = 1, 1, 6, 0x80
	binary.BigEndian.PutUint32(b[4:], uint32(number))
	copy(b[28:], from[:])
	copy(b[236:], []byte{99, 130, 83, 99})
	b = append(append(b, 53, 1, kind, 55, 5, 1, 3, 6, 15, 26), options...)
	b = append(b, 255)
	frame := ethernet(broadcastMAC, from, etherIPv4, ipv4(datagram{
		from: netip.AddrPortFrom(noIPv4, dhcp4Client), to: netip.AddrPortFrom(broadcastIPv4, dhcp4Server), payload: b,
	}))
	frame[etherLength+26], frame[etherLength+27] = 0, 0 // no checksum
	return frame
}

func (dialog4) parse(frame []byte) (got answered, ok bool) {
	d, ok := parseIPv4(frame[min(etherLength, len(frame)):])
	if b := d.payload; !ok || len(b) < dhcp4Fixed || b[0] != 2 {
		return got, false
	}
	got.number = int(binary.BigEndian.Uint32(d.payload[4:]))
	for rest := d.payload[dhcp4Fixed:]; len(rest) > 2 && rest[0] != 255 && len(rest) >= 2+int(rest[1]); rest = rest[2+int(rest[1]):] {
		switch value := rest[2 : 2+int(rest[1])]; rest[0] {
		case 53:
			got.kind = map[byte]answerKind{2: isOffer, 5: isGiven, 6: isRefused}[value[0]]
		case 54:
			got.server = value
		}
	}
	return got, true
}

type dialog6 struct{}

func (dialog6) first(number int) []byte { return guestFrame6(number, 1, nil, false) }

func (dialog6) request(number int, server []byte) []byte { return guestFrame6(number, 3, server, true) }

func (dialog6) renew(number int) []byte { return guestFrame6(number, 6, nil, true) } // REBIND needs no server

// allGuests is the source of all messages: a server that asks for the MAC address of each guest would measure its kernel.
var allGuests = netip.MustParseAddr("fe80::fe")

func guestFrame6(number int, kind byte, server []byte, hasAddress bool) []byte {
	from := macOfGuest(number)
	b := []byte{kind, 0, byte(number >> 8), byte(number), 0, 1, 0, 10, 0, 3, 0, 1}
	b = append(append(b, from[:]...), 0, 8, 0, 2, 0, 0, 0, 6, 0, 4, 0, 23, 0, 24)
	if server != nil {
		b = append(append(b, 0, 2, 0, byte(len(server))), server...)
	}
	b = append(b, 0, 3, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	if hasAddress {
		b[len(b)-13] = 12 + 28
		b = append(append(b, 0, 5, 0, 24), ipv6OfGuest(number)...)
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	return ethernet(groupMAC(allDHCP6Servers), from, etherIPv6, ipv6(datagram{
		from: netip.AddrPortFrom(allGuests, dhcp6Client), to: netip.AddrPortFrom(allDHCP6Servers, dhcp6Server), payload: b,
	}))
}

func (dialog6) parse(frame []byte) (got answered, ok bool) {
	if len(frame) < etherLength+48+4 {
		return got, false
	}
	b := frame[etherLength+48:]
	got.number = int(b[2])<<8 | int(b[3])
	got.kind = map[byte]answerKind{2: isOffer, 7: isRefused}[b[0]]
	for rest := b[4:]; len(rest) >= 4; {
		length := int(binary.BigEndian.Uint16(rest[2:]))
		if len(rest) < 4+length {
			return got, false
		}
		switch value := rest[4 : 4+length]; binary.BigEndian.Uint16(rest) {
		case 2:
			got.server = value
		case 3: // with the address of the guest and a lifetime
			if b[0] == 7 && length >= 40 && [16]byte(value[16:32]) == [16]byte(ipv6OfGuest(got.number)) && binary.BigEndian.Uint32(value[36:]) > 0 {
				got.kind = isGiven
			}
		}
		rest = rest[4+length:]
	}
	return got, true
}
