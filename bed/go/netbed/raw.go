package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

type framesRequest struct {
	In, Interface string
	// Frames begin with their Ethernet header.
	Frames [][]byte
	// Times that the frames are sent, once by default.
	Times int
}

type framesAnswer struct {
	// Ms that sending took, with the way of each frame through bridges, which the kernel goes at once.
	Ms float64 `json:"ms"`
}

// sendFrames sends frames from an interface as they are.
func (b *bed) sendFrames(request framesRequest) (any, error) {
	s, err := b.find(request.In)
	if err != nil {
		return nil, err
	}
	socket, index, err := openSendSocket(s, request.Interface)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	to := &unix.SockaddrLinklayer{Ifindex: index}
	began := time.Now()
	for range max(request.Times, 1) {
		for number, frame := range request.Frames {
			err := unix.Sendto(socket, frame, 0, to)
			for errors.Is(err, unix.ENOBUFS) {
				err = unix.Sendto(socket, frame, 0, to)
			}
			if err != nil {
				return nil, fmt.Errorf("frame %d from %s in %s: %w", number, request.Interface, request.In, err)
			}
		}
	}
	return framesAnswer{float64(time.Since(began).Microseconds()) / 1000}, nil
}

type captureRequest struct {
	In, Interface string
	// Marker is contained in each frame that is reported.
	Marker string
}

type captured struct {
	AtMs float64 `json:"atMs"`
	Data []byte  `json:"data"`
}

// capture reports frames with a marker that an interface receives, until it is stopped.
func (b *bed) capture(ctx context.Context, request captureRequest, emit emit) (any, error) {
	s, err := b.find(request.In)
	if err != nil {
		return nil, err
	}
	socket, _, err := openPacketSocket(s, request.Interface)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	emit("started")
	buffer := make([]byte, 1<<16)
	for ctx.Err() == nil {
		length, from, err := unix.Recvfrom(socket, buffer, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w", request.Interface, request.In, err)
		}
		address, ok := from.(*unix.SockaddrLinklayer)
		if ok && address.Pkttype == unix.PACKET_OUTGOING || !bytes.Contains(buffer[:length], []byte(request.Marker)) {
			continue
		}
		emit(captured{now(), append([]byte(nil), buffer[:length]...)})
	}
	return done{}, nil
}
