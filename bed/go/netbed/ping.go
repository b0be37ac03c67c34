package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

type pingRequest struct {
	From, Target string
	// Count of echo requests; 0: until the request is stopped.
	Count      int
	IntervalMs float64
	TimeoutMs  float64
	// Size of the payload, in bytes.
	Size int
}

type pingAnswer struct {
	Sent       int `json:"sent"`
	Received   int `json:"received"`
	Lost       int `json:"lost"`
	Duplicates int `json:"duplicates"`
	// LossRuns are series of requests without a reply.
	LossRuns []lossRun `json:"lossRuns"`
	// RttMs of replies: p50, p95, max; absent without replies.
	RttMs *rtt `json:"rttMs,omitempty"`
	// Error is the last error of sending.
	Error string `json:"error,omitempty"`
}

type lossRun struct {
	// AtMs since the first request.
	AtMs  float64 `json:"atMs"`
	Count int     `json:"count"`
}

type rtt struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	Max float64 `json:"max"`
}

// protocol of echo messages, of one IP version.
type protocol struct {
	network, any   string
	request, reply byte
}

var (
	icmp4 = protocol{"ip4:icmp", "0.0.0.0", 8, 0}
	icmp6 = protocol{"ip6:ipv6-icmp", "::", 128, 129}
)

// pinger is one run of echo requests; the n-th has the sequence number n mod 65536.
type pinger struct {
	protocol
	socket     net.PacketConn
	target     net.IP
	id         uint16
	mutex      sync.Mutex
	sentAt     []time.Time
	rtts       []time.Duration // 0: no answer yet
	duplicates int
	problem    string
}

func (b *bed) ping(ctx context.Context, request pingRequest, emit emit) (any, error) {
	s, err := b.find(request.From)
	if err != nil {
		return nil, err
	}
	p := &pinger{protocol: icmp4, target: net.ParseIP(request.Target), id: uint16(rand.Uint32())}
	if p.target == nil {
		return nil, fmt.Errorf("target %q is no IP address", request.Target)
	}
	if p.target.To4() == nil {
		p.protocol = icmp6
	}
	err = s.run(func() (err error) {
		p.socket, err = net.ListenPacket(p.network, p.any)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer p.socket.Close()
	go p.receive()
	emit("started")
	interval := time.Duration(orElse(request.IntervalMs, 100) * float64(time.Millisecond))
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 0; ctx.Err() == nil && (request.Count == 0 || n < request.Count); n++ {
		p.send(n, request.Size)
		if n+1 == request.Count {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	p.await(time.Duration(orElse(request.TimeoutMs, 1000) * float64(time.Millisecond)))
	return p.summary(), nil
}

func orElse(value, otherwise float64) float64 {
	if value > 0 {
		return value
	}
	return otherwise
}

func (p *pinger) send(n, size int) {
	message := make([]byte, 8+size)
	message[0] = p.request
	binary.BigEndian.PutUint16(message[4:], p.id)
	binary.BigEndian.PutUint16(message[6:], uint16(n))
	if p.request == icmp4.request { // the kernel does it for ICMPv6
		binary.BigEndian.PutUint16(message[2:], checksum(message))
	}
	p.mutex.Lock()
	p.sentAt, p.rtts = append(p.sentAt, time.Now()), append(p.rtts, 0)
	p.mutex.Unlock()
	if _, err := p.socket.WriteTo(message, &net.IPAddr{IP: p.target}); err != nil {
		p.mutex.Lock()
		p.problem = err.Error()
		p.mutex.Unlock()
	}
}

func (p *pinger) receive() {
	buffer := make([]byte, 65536)
	for {
		length, from, err := p.socket.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		message := buffer[:length]
		if err != nil || length < 8 || message[0] != p.reply || binary.BigEndian.Uint16(message[4:]) != p.id {
			continue
		}
		if address, ok := from.(*net.IPAddr); ok && address.IP.Equal(p.target) {
			p.count(int(binary.BigEndian.Uint16(message[6:])))
		}
	}
}

func (p *pinger) count(sequence int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	n := len(p.sentAt) - 1
	n -= (n - sequence) & 0xffff // the latest request with that number
	if n < 0 {
		return
	}
	if p.rtts[n] != 0 {
		p.duplicates++
		return
	}
	p.rtts[n] = time.Since(p.sentAt[n])
}

// await waits for the last replies.
func (p *pinger) await(limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		p.mutex.Lock()
		complete := !slices.Contains(p.rtts[max(0, len(p.rtts)-100):], 0)
		p.mutex.Unlock()
		if complete {
			return
		}
	}
}

func (p *pinger) summary() pingAnswer {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	answer := pingAnswer{Sent: len(p.sentAt), Duplicates: p.duplicates, LossRuns: []lossRun{}, Error: p.problem}
	var rtts []float64
	for n, took := range p.rtts {
		if took != 0 {
			rtts = append(rtts, milliseconds(took))
			continue
		}
		answer.Lost++
		if n > 0 && p.rtts[n-1] == 0 {
			answer.LossRuns[len(answer.LossRuns)-1].Count++
		} else {
			answer.LossRuns = append(answer.LossRuns, lossRun{milliseconds(p.sentAt[n].Sub(p.sentAt[0])), 1})
		}
	}
	answer.Received = len(rtts)
	if len(rtts) > 0 {
		slices.Sort(rtts)
		answer.RttMs = &rtt{rtts[len(rtts)/2], rtts[len(rtts)*95/100], rtts[len(rtts)-1]}
	}
	return answer
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
