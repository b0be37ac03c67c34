package main

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"
)

var (
	ownMAC    = mac{2, 0, 0, 0, 0, 1}
	ownIPv4   = netip.MustParseAddr("10.1.0.2")
	guestMAC  = mac{2, 0, 0, 0, 0, 0xa} // in the table, with all options
	guestIPv4 = netip.MustParseAddr("10.1.0.10")
	guestIPv6 = netip.MustParseAddr("fd00:1::a")
	plainMAC  = mac{2, 0, 0, 0, 0, 0xb} // in the table, without a default route and options
	otherMAC  = mac{2, 0, 0, 0, 0, 0x99}
)

func noRandom(int) int { return 0 }

func noTimers(time.Duration, func(time.Time)) {}

// testLink is an interface of which a test sees the frames.
type testLink struct {
	address bool
	failed  error // of all frames
	sent    [][]byte
}

func (l *testLink) mac() mac                  { return ownMAC }
func (l *testLink) hasAddress() (bool, error) { return l.address, nil }
func (l *testLink) lost() uint64              { return 0 }
func (l *testLink) send(frame []byte) error {
	if l.failed == nil {
		l.sent = append(l.sent, frame)
	}
	return l.failed
}

// world is a responder with the table of testdata/session.jsonl, whose guests have their addresses, its interface, and
// its clock.
type world struct {
	*responder
	t       *testing.T
	link    *testLink
	now     time.Time
	reports []report
	timers  []timer
}

// timer runs once at its time.
type timer struct {
	at  time.Time
	run func(now time.Time)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, link: &testLink{}, now: start}
	w.responder = newResponder(
		func(string) (link, error) { return w.link, nil },
		func(one report) bool { w.reports = append(w.reports, one); return true },
		noRandom,
		func(wait time.Duration, run func(time.Time)) {
			w.timers = append(w.timers, timer{w.now.Add(wait), run})
		},
	)
	w.connected()
	w.obeyLines(golden(t, false)[:6]...)
	for address := range w.table.byAddress {
		w.table.confirmed[address] = true
	}
	w.wait(10 * time.Second) // announcements
	w.take()
	w.reports = nil
	w.counter = newCounter()
	w.counter.since = w.now
	return w
}

func (w *world) obeyLines(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		got, err := parseCommand([]byte(line))
		if err == nil {
			err = w.obey(w.now, w.session, got)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// wait lets time pass, with timers and a tick every 50 ms.
func (w *world) wait(duration time.Duration) {
	for end := w.now.Add(duration); w.now.Before(end); {
		w.now = w.now.Add(50 * time.Millisecond)
		w.runTimers()
		w.tick(w.now)
	}
}

// runTimers runs the timers that are due, also those that these start.
func (w *world) runTimers() {
	for index := 0; index < len(w.timers); {
		due := w.timers[index]
		if due.at.After(w.now) {
			index++
			continue
		}
		w.timers = slices.Delete(w.timers, index, index+1)
		due.run(w.now)
	}
}

// take returns the frames that were sent since the last call.
func (w *world) take() [][]byte {
	sent := w.link.sent
	w.link.sent = nil
	return sent
}

// hear receives a frame, and returns the frames that are sent at once.
func (w *world) hear(frame []byte) [][]byte {
	w.receive(w.now, frame, checksumsGood)
	return w.take()
}

func (w *world) expectNoFrames(sent [][]byte) {
	w.t.Helper()
	if len(sent) > 0 {
		w.t.Fatalf("%d frames", len(sent))
	}
}

func (w *world) expectDropped(reason string) {
	w.t.Helper()
	if got := w.counter.dropped; !reflect.DeepEqual(got, map[string]uint64{reason: 1}) {
		w.t.Fatalf("dropped: %v, want one %s", got, reason)
	}
}

func (w *world) expectSeen(want ...seen) {
	w.t.Helper()
	var got []seen
	for _, each := range w.reports {
		if each.Seen != nil {
			got = append(got, *each.Seen)
		}
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("seen: %v, want %v", got, want)
	}
}

// fuzz receives a frame from a guest of the table. No frame may make the program fail, or send a frame that is too long.
func fuzz(t *testing.T, frame []byte) {
	for _, isFresh := range []bool{true, false} {
		w := newWorld(t)
		if isFresh {
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
		}
		if len(frame) >= etherLength {
			copy(frame[6:12], guestMAC[:])
		}
		w.receive(w.now, bytes.Clone(frame), checksumsUnknown)
		w.take()
		for _, sent := range w.hear(withHeaderChecksum(frame)) {
			if to := mac(sent[:6]); len(sent) > maxFrame || to != guestMAC && !to.isGroup() {
				t.Fatalf("%d bytes are sent to %s", len(sent), to)
			}
		}
		if w.counter.dropped[dropFailed]+w.counter.dropped[dropUnsent] > 0 {
			t.Fatalf("dropped: %v", w.counter.dropped)
		}
	}
}
