package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

type framesRequest struct {
	In, Interface string
	// Frames begin with their Ethernet header.
	Frames [][]byte
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
	for number, frame := range request.Frames {
		err := unix.Sendto(socket, frame, 0, to)
		for errors.Is(err, unix.ENOBUFS) {
			err = unix.Sendto(socket, frame, 0, to)
		}
		if err != nil {
			return nil, fmt.Errorf("frame %d from %s in %s: %w", number, request.Interface, request.In, err)
		}
	}
	return done{}, nil
}

type captureRequest struct {
	In, Interface string
	// Marker is contained in each frame that is reported.
	Marker string
}

type captured struct {
	Data []byte `json:"data"`
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
	err = receive(ctx, socket, func(data []byte, outgoing bool) {
		if !outgoing && bytes.Contains(data, []byte(request.Marker)) {
			emit(captured{bytes.Clone(data)})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", request.Interface, request.In, err)
	}
	return done{}, nil
}
