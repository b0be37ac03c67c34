package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// Reports that wait for a slow reader. Further ones are dropped.
	maxWaitingReports = 256
	writeTimeout      = 10 * time.Second
	acceptRetry       = 500 * time.Millisecond
)

// sessions serves one connection at a time: the newest.
type sessions struct {
	responder *responder
	mutex     sync.Mutex
	newest    *session
}

type session struct {
	conn    net.Conn
	waiting chan report
	number  uint64 // of the responder
}

// listen creates the socket, for the owner and the group only.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	// Before the socket exists, so that it never has other permissions.
	before := syscall.Umask(0o117)
	defer syscall.Umask(before)
	return net.Listen("unix", path)
}

// serve accepts connections until the listener is closed.
func (s *sessions) serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // the node has no file descriptor or memory left
			slog.Warn("cannot accept a connection, trying again", "error", err.Error())
			time.Sleep(acceptRetry)
			continue
		}
		started := &session{conn: conn, waiting: make(chan report, maxWaitingReports), number: s.responder.connected()}
		s.replace(started)
		go started.write()
		go s.read(started)
	}
}

// replace ends the newest connection.
func (s *sessions) replace(by *session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.newest != nil {
		s.newest.end()
	}
	s.newest = by
}

func (s *sessions) read(from *session) {
	err := s.obeyAll(from)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.newest != from {
		return // replaced
	}
	if err != nil {
		slog.Error("the connection ends", "error", err.Error())
	}
	from.end()
	s.newest = nil
}

func (s *session) end() {
	s.conn.Close()
	close(s.waiting)
}

func (s *sessions) obeyAll(from *session) error {
	lines := bufio.NewScanner(from.conn)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		got, err := parseCommand(lines.Bytes())
		if err == nil {
			err = s.responder.obey(time.Now(), from.number, got)
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// send queues a report for the newest connection. It returns false if the report is dropped.
func (s *sessions) send(one report) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.newest == nil {
		return false
	}
	select {
	case s.newest.waiting <- one:
		return true
	default:
		return false
	}
}

func (s *session) write() {
	encoder := json.NewEncoder(s.conn)
	for one := range s.waiting {
		s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := encoder.Encode(one); err != nil {
			s.conn.Close() // so that reading ends
			for range s.waiting {
			}
			return
		}
	}
}
