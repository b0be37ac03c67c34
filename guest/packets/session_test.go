package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
)

// startSessions serves a socket in a temporary folder, and returns the responder and a function that connects.
func startSessions(t *testing.T) (*responder, func() *testSession) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "packets.sock")
	listener, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	all := newSessions()
	go all.serve(listener)
	return all.responder, func() *testSession { return connectTo(t, path) }
}

func newSessions() *sessions {
	all := &sessions{}
	all.responder = newResponder(func(string) (link, error) { return &testLink{}, nil }, all.send, noRandom, noTimers)
	return all
}

func connectTo(t *testing.T, path string) *testSession {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	return &testSession{t, conn, bufio.NewReader(conn)}
}

type testSession struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (s *testSession) send(lines ...string) {
	s.t.Helper()
	if _, err := s.conn.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testSession) expect(want string) {
	s.t.Helper()
	if got, err := s.in.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
		s.t.Fatalf("got %q (%v), want %q", got, err, want)
	}
}

func (s *testSession) expectEnd() {
	s.t.Helper()
	if got, err := s.in.ReadString('\n'); err == nil {
		s.t.Fatalf("got %q, want the end of the connection", got)
	}
}

// golden returns the lines of testdata/session.jsonl in one direction.
func golden(t *testing.T, isReport bool) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		is := strings.HasPrefix(line, `{"hello"`) || strings.HasPrefix(line, `{"seen"`) || strings.HasPrefix(line, `{"counts"`) ||
			strings.HasPrefix(line, `{"probed"`)
		if is == isReport {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

const helloLine = `{"hello":{"v":2,"mac":"02:00:00:00:00:01","address":false}}`

func TestGoldenCommandsFillTheTable(t *testing.T) {
	responder, connect := startSessions(t)
	session := connect()
	session.send(golden(t, false)...)
	session.expect(helloLine)
	session.expect(helloLine) // of the second config, so all is read
	now := time.Now()
	if len(responder.table.guests) != 2 || !responder.table.isFresh(now) || responder.table.isFresh(now.Add(30*time.Second)) {
		t.Fatalf("table: %+v", responder.table)
	}
	guest := responder.table.guest(mac{2, 0, 0, 0, 0, 0xa})
	want := entryIPv4{netip.MustParseAddr("10.1.0.10"), 24, netip.MustParseAddr("10.1.0.1")}
	if guest.ipv4 != want || guest.owner != "vm1" || guest.ipv6 != netip.MustParseAddr("fd00:1::a") || guest.options.MTU != 1400 {
		t.Fatalf("guest: %+v", guest)
	}
	if responder.config.Server.IPv4.IsValid() || len(responder.config.Peers) != 0 {
		t.Fatalf("config: %+v", responder.config)
	}
}

func TestGoldenReportsAreWrittenAsTheyStand(t *testing.T) {
	for _, line := range golden(t, true) {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		var one report
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(one); string(again) != line {
			t.Errorf("%s is written as %s", line, again)
		}
	}
}

func TestNewestConnectionReplacesAnOlderOne(t *testing.T) {
	responder, connect := startSessions(t)
	lines := golden(t, false)
	first := connect()
	first.send(lines[0])
	first.expect(helloLine)
	second := connect()
	first.expectEnd()
	second.send(lines[0])
	second.expect(helloLine)
	if err := responder.obey(time.Now(), 1, &command{Snapshot: "begin"}); err != errReplaced {
		t.Fatalf("a command of the older connection: %v", err)
	}
}

func TestInvalidCommandEndsTheConnection(t *testing.T) {
	config := golden(t, false)[0]
	put := func(entry string) string { return `{"put":[` + entry + `]}` }
	options := `{"options":{"id":"o1"}}`
	cases := map[string]string{
		"no JSON":                         `{`,
		"no command":                      `{}`,
		"two commands":                    `{"fresh":{"forMs":1},"snapshot":"begin"}`,
		"two values":                      `{"fresh":{"forMs":1}}{"fresh":{"forMs":1}}`,
		"unknown command":                 `{"ban":["02:00:00:00:00:0a"]}`,
		"unknown field":                   `{"fresh":{"forMs":1,"more":1}}`,
		"other version":                   strings.Replace(config, `"v":2`, `"v":1`, 1),
		"other interface":                 strings.Replace(config, "guest0", "guest1", 1),
		"times in the wrong order":        strings.Replace(config, `"rebind":600`, `"rebind":200`, 1),
		"server address of the wrong IP":  strings.Replace(config, `"10.1.0.2"`, `"fd00::2"`, 1),
		"DUID of another type":            strings.Replace(config, `"0004`, `"0001`, 1),
		"boot file that is too long":      strings.Replace(config, `"boot.efi"`, `"`+strings.Repeat("x", 256)+`"`, 1),
		"boot parameter that is too long": strings.Replace(config, `"quiet"`, `"`+strings.Repeat("x", 65)+`"`, 1),
		"end without begin":               `{"snapshot":"end"}`,
		"fresh for ever":                  `{"fresh":{"forMs":99999999999}}`,
		"options that were not sent":      put(`{"mac":"02:00:00:00:00:0a","ipv6":{"address":"fd00::1"},"options":"o9"}`),
		"MAC address of a group":          put(`{"mac":"03:00:00:00:00:0a","ipv6":{"address":"fd00::1"},"options":"o1"}`),
		"MAC address in another form":     put(`{"mac":"02-00-00-00-00-0A","ipv6":{"address":"fd00::1"},"options":"o1"}`),
		"owner that is too long":          put(`{"mac":"02:00:00:00:00:0a","owner":"` + strings.Repeat("x", 65) + `","ipv6":{"address":"fd00::1"},"options":"o1"}`),
		"no address":                      put(`{"mac":"02:00:00:00:00:0a","options":"o1"}`),
		"IPv6 address for IPv4":           put(`{"mac":"02:00:00:00:00:0a","ipv4":{"address":"fd00::1","prefix":24},"options":"o1"}`),
		"prefix that is too long":         put(`{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.0.0.1","prefix":33},"options":"o1"}`),
		"zone":                            put(`{"mac":"02:00:00:00:00:0a","ipv6":{"address":"fe80::1%a"},"options":"o1"}`),
		"mapped address":                  put(`{"mac":"02:00:00:00:00:0a","ipv6":{"address":"::ffff:10.0.0.1"},"options":"o1"}`),
		"search domain with a long label": `{"options":{"id":"o2","search":["` + strings.Repeat("a", 64) + `.org"]}}`,
		"route of two families":           `{"options":{"id":"o2","routes":[{"destination":"10.9.0.0/16","gateway":"fd00::1"}]}}`,
		"probe of no address":             `{"probe":{"id":1,"address":"","forMs":900}}`,
		"probe of a group":                `{"probe":{"id":1,"address":"ff02::1","forMs":900}}`,
		"probe without a time":            `{"probe":{"id":1,"address":"10.1.0.9"}}`,
		"probe that expects too many":     `{"probe":{"id":1,"address":"10.1.0.9","forMs":900,"expect":["02:00:00:00:00:0a"` + strings.Repeat(`,"02:00:00:00:00:0a"`, maxExpected) + `]}}`,
		"forgotten options":               `{"forget":["o1"]}` + "\n" + put(`{"mac":"02:00:00:00:00:0a","ipv6":{"address":"fd00::1"},"options":"o1"}`),
		"too many ids in a line":          `{"forget":["o1"` + strings.Repeat(`,"o1"`, maxBatch) + `]}`,
		"too many entries in a line":      `{"remove":["02:00:00:00:00:0a"` + strings.Repeat(`,"02:00:00:00:00:0a"`, maxBatch) + `]}`,
		"line that is too long":           `{"snapshot":"` + strings.Repeat("x", maxLine) + `"}`,
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			_, connect := startSessions(t)
			session := connect()
			session.send(config, options)
			session.expect(helloLine)
			session.conn.Write([]byte(line + "\n")) // it fails if the line is not read to its end
			session.expectEnd()
		})
	}
}

func TestOptionSetsOfTwoTablesAreKept(t *testing.T) {
	w := newWorld(t)
	for number := len(w.options); number < maxOptionSets; number++ {
		w.obeyLines(fmt.Sprintf(`{"options":{"id":"set%d"}}`, number))
	}
	more := &command{Options: &optionSet{ID: "more"}}
	if err := w.obey(w.now, w.session, more); err == nil {
		t.Fatal("a connection has more sets of options than it may have")
	}
	w.obeyLines(`{"forget":["o1"]}`, `{"options":{"id":"more"}}`)
	if guest := w.table.guest(guestMAC); guest.options.MTU != 1400 {
		t.Fatalf("a guest has lost its options: %+v", guest)
	}
}

// Entries of an earlier connection may belong to claims that are gone.
func TestTableIsNotFreshBeforeAConnectionHasSentAllOfIt(t *testing.T) {
	fresh := `{"fresh":{"forMs":30000}}`
	for name, lines := range map[string][]string{
		"no snapshot":      {fresh},
		"half a snapshot":  {`{"snapshot":"begin"}`, fresh},
		"another snapshot": {`{"snapshot":"begin"}`, `{"snapshot":"end"}`, `{"snapshot":"begin"}`, fresh},
	} {
		t.Run(name, func(t *testing.T) {
			_, connect := startSessions(t)
			for range 2 {
				session := connect()
				session.send(golden(t, false)[0])
				session.expect(helloLine)
				session.send(lines...)
				session.expectEnd()
			}
		})
	}
}

// Some of these come from the NAD of a tenant: they must not end the connection.
func TestUnusualOptionsAreAccepted(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat(strings.Repeat("a", 60)+".", 3) + "org"
	w.obeyLines(`{"options":{"id":"o3","dns":["127.0.0.1","0.0.0.0","ff02::1","::ffff:10.0.0.1","fe80::1%a",""],"ntp":["224.0.1.1"],"search":["short.org","` + long + `","` + long + `"]}}`)
	if got := w.options["o3"].Search; len(got) != 2 {
		t.Fatalf("search domains: %v", got)
	}
	w.obeyLines(`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o3"}]}`)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	w.wait(time.Minute)
	w.take()
	for _, frame := range [][]byte{discover(guestMAC), solicitation(guestMAC, guestLinkLocal), from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1))} {
		w.obeyLines(`{"fresh":{"forMs":30000}}`)
		if sent := w.hear(frame); len(sent) != 1 {
			t.Fatalf("%d answers; dropped: %v", len(sent), w.counter.dropped)
		}
	}
}

func TestFirstCommandMustBeConfig(t *testing.T) {
	_, connect := startSessions(t)
	session := connect()
	session.send(`{"snapshot":"begin"}`)
	session.expectEnd()
}

func TestSlowReaderLosesReports(t *testing.T) {
	one := &session{waiting: make(chan report, maxWaitingReports)}
	all := &sessions{newest: one}
	sent := 0
	for all.send(report{Counts: &counts{}}) {
		sent++
	}
	if sent != maxWaitingReports {
		t.Fatalf("%d reports wait, not %d", sent, maxWaitingReports)
	}
}

func FuzzSession(f *testing.F) {
	text, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := parseCommand(line)
		if err != nil {
			return
		}
		responder := newResponder(func(string) (link, error) { return &testLink{}, nil }, func(report) bool { return true }, noRandom, noTimers)
		responder.obey(time.Time{}, responder.connected(), got)
	})
}
