// Command netbed holds the network namespaces of nodes, pods and hosts of the test bed, connects them by bridges, runs CNI plugins
// in them and observes packets. The namespaces have no names and belong to this process only: when it ends, for whatever reason,
// the kernel removes them.
//
// It reads one request from each line, {"id":1,"op":"addNode",...}, and answers {"id":1,"result":...} or {"id":1,"error":"..."} in
// any order. An ongoing request sends {"id":1,"event":...} in between, and ends with {"id":2,"op":"stop","request":1}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"runtime"
	"sync"
)

// The main thread never changes its namespaces, because /proc/<pid> describes that thread.
func init() { runtime.LockOSThread() }

type envelope struct {
	ID      int    `json:"id"`
	Op      string `json:"op"`
	Request int    `json:"request"` // of "stop"
}

type answer struct {
	ID     int    `json:"id"`
	Result any    `json:"result,omitempty"`
	Event  any    `json:"event,omitempty"`
	Error  string `json:"error,omitempty"`
}

// emit sends an event of an ongoing request.
type emit func(event any)

type operation func(ctx context.Context, body []byte, emit emit) (any, error)

// Nothing that a request says is an answer by itself.
type done struct{}

func op[Request any](act func(Request) (any, error)) operation {
	return lasting(func(_ context.Context, request Request, _ emit) (any, error) { return act(request) })
}

func lasting[Request any](act func(context.Context, Request, emit) (any, error)) operation {
	return func(ctx context.Context, body []byte, emit emit) (any, error) {
		var request Request
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, err
		}
		return act(ctx, request, emit)
	}
}

type server struct {
	operations map[string]operation
	writing    sync.Mutex
	out        *json.Encoder
	mutex      sync.Mutex
	running    map[int]context.CancelFunc
}

func main() {
	bed := newBed()
	s := &server{out: json.NewEncoder(os.Stdout), running: map[int]context.CancelFunc{}, operations: map[string]operation{
		"probe":          op(probe),
		"addNode":        op(bed.addNode),
		"join":           op(bed.join),
		"addPod":         op(bed.addPod),
		"removePod":      op(bed.removePod),
		"addHost":        op(bed.addHost),
		"removeHost":     op(bed.removeHost),
		"addGuest":       op(bed.addGuest),
		"plugGuest":      op(bed.plugGuest),
		"unplugGuest":    op(bed.unplugGuest),
		"removeGuest":    op(bed.removeGuest),
		"prepare":        op(bed.prepare),
		"run":            op(bed.runCommand),
		"start":          lasting(bed.start),
		"signal":         op(bed.signal),
		"ping":           lasting(bed.ping),
		"watch":          lasting(bed.watch),
		"interfaces":     op(bed.interfaces),
		"addAddress":     op(bed.addAddress),
		"flushAddresses": op(bed.flushAddresses),
		"setMac":         op(bed.setMac),
		"announce":       op(bed.announce),
		"sendFrames":     op(bed.sendFrames),
		"capture":        lasting(bed.capture),
		"advertise":      op(bed.advertise),
		"inventory":      op(bed.inventory),
	}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		s.take(append([]byte(nil), lines.Bytes()...))
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func (s *server) take(body []byte) {
	var request envelope
	if err := json.Unmarshal(body, &request); err != nil {
		log.Printf("not a request: %v", err)
		return
	}
	if request.Op == "stop" {
		s.stop(request)
		return
	}
	act, ok := s.operations[request.Op]
	if !ok {
		s.say(answer{ID: request.ID, Error: fmt.Sprintf("there is no operation %q", request.Op)})
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.mutex.Lock()
	s.running[request.ID] = cancel
	s.mutex.Unlock()
	go func() {
		result, err := act(ctx, body, func(event any) { s.say(answer{ID: request.ID, Event: event}) })
		s.mutex.Lock()
		delete(s.running, request.ID)
		s.mutex.Unlock()
		cancel()
		if err != nil {
			s.say(answer{ID: request.ID, Error: err.Error()})
			return
		}
		s.say(answer{ID: request.ID, Result: result})
	}()
}

// stop ends an ongoing request. A request that has ended already is no error.
func (s *server) stop(request envelope) {
	s.mutex.Lock()
	cancel := s.running[request.Request]
	s.mutex.Unlock()
	if cancel != nil {
		cancel()
	}
	s.say(answer{ID: request.ID, Result: done{}})
}

func (s *server) say(a answer) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.out.Encode(a); err != nil {
		os.Exit(1) // nobody listens any more
	}
}
