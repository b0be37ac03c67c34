package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// Of the type of an attribute.
	typeMask = 0x3fff
	// The length of an attribute has 16 bits. In a longer message it could wrap, and the kernel would leave out the rest.
	maxBody      = 1<<16 - 1
	dumpAttempts = 100
)

// message is one of netlink. Libraries for it were measured: they cost every start of the plugin 0.15 ms, and an ADD with a guard
// 2 ms, because they wait for each acknowledgement in a goroutine of its own.
type message struct {
	kind, flags uint16
	body        []byte
}

// exchange sends messages in one datagram, and returns the answers to them. The kernel answers while it receives, so all that is
// there after that is everything. The namespace is a file descriptor; 0: this one.
func exchange(protocol, netns int, messages ...message) (answers []message, err error) {
	socket, err := openSocket(protocol, netns)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	var datagram []byte
	for i, each := range messages {
		if len(each.body) > maxBody {
			return nil, fmt.Errorf("a message of %d bytes is too long for the kernel: the guard has too many addresses or rules", len(each.body))
		}
		datagram = binary.NativeEndian.AppendUint32(datagram, uint32(unix.SizeofNlMsghdr+len(each.body)))
		datagram = binary.NativeEndian.AppendUint16(datagram, each.kind)
		datagram = binary.NativeEndian.AppendUint16(datagram, each.flags|unix.NLM_F_REQUEST)
		datagram = binary.NativeEndian.AppendUint32(datagram, uint32(i+1))
		datagram = binary.NativeEndian.AppendUint32(datagram, 0) // the kernel knows the sender
		datagram = padded(append(datagram, each.body...))
	}
	if err := unix.Sendto(socket, datagram, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("%d bytes to the kernel: %w", len(datagram), err)
	}
	return receive(socket)
}

// receive returns what the kernel has answered.
func receive(socket int) (answers []message, err error) {
	hasAnswered := false
	buffer := make([]byte, 1<<16)
	for {
		size, sender, err := unix.Recvfrom(socket, buffer, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) && hasAnswered {
			return answers, nil
		}
		if err != nil {
			return nil, fmt.Errorf("no answer of the kernel: %w", err)
		}
		if from, known := sender.(*unix.SockaddrNetlink); !known || from.Pid != 0 {
			continue // a process, which may be the pod's own
		}
		received, err := parseMessages(buffer[:size])
		if err != nil {
			return nil, err
		}
		hasAnswered, answers = true, append(answers, received...)
	}
}

// dump returns all that nftables has of a kind. If something is changed meanwhile, the kernel says so, and it begins again.
func dump(netns int, kind uint16, of attributes) (answers []message, err error) {
	for range dumpAttempts {
		answers, err = exchange(unix.NETLINK_NETFILTER, netns, tableMessage(kind, unix.NLM_F_DUMP, of))
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return answers, err
}

// openSocket enters another namespace only for the moment in which the socket is made.
func openSocket(protocol, netns int) (int, error) {
	open := func() (int, error) {
		return unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	}
	if netns == 0 {
		return open()
	}
	runtime.LockOSThread()
	here, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(here)
	if err := unix.Setns(netns, unix.CLONE_NEWNET); err != nil {
		return 0, err
	}
	socket, err := open()
	if back := unix.Setns(here, unix.CLONE_NEWNET); back != nil {
		return 0, errors.Join(err, back) // the thread stays locked, so that nothing else runs in that namespace
	}
	runtime.UnlockOSThread()
	return socket, err
}

// parseMessages returns what a datagram says besides acknowledgements. The first error is returned.
func parseMessages(datagram []byte) (list []message, err error) {
	for len(datagram) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(datagram))
		if size < unix.SizeofNlMsghdr || size > len(datagram) {
			return nil, errors.New("the kernel's answer is cut off")
		}
		if binary.NativeEndian.Uint16(datagram[6:])&unix.NLM_F_DUMP_INTR != 0 {
			return nil, unix.EINTR
		}
		kind, body := binary.NativeEndian.Uint16(datagram[4:]), datagram[unix.SizeofNlMsghdr:size]
		switch {
		case (kind == unix.NLMSG_ERROR || kind == unix.NLMSG_DONE) && len(body) >= 4:
			if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
				return nil, syscall.Errno(-code)
			}
		case kind >= unix.NLMSG_MIN_TYPE:
			list = append(list, message{kind: kind, body: append([]byte(nil), body...)})
		}
		datagram = datagram[min(len(datagram), (size+3)&^3):]
	}
	return list, nil
}

// attributes is a list of them, as bytes. Numbers have the byte order of the network, as nftables wants it.
type attributes []byte

func (a attributes) bytes(kind uint16, value []byte) attributes {
	a = binary.NativeEndian.AppendUint16(a, uint16(unix.SizeofNlAttr+len(value)))
	a = binary.NativeEndian.AppendUint16(a, kind)
	return padded(append(a, value...))
}

func (a attributes) text(kind uint16, value string) attributes {
	return a.bytes(kind, append([]byte(value), 0))
}

func (a attributes) number(kind uint16, value uint32) attributes {
	return a.bytes(kind, binary.BigEndian.AppendUint32(nil, value))
}

func (a attributes) nested(kind uint16, value attributes) attributes {
	return a.bytes(kind|unix.NLA_F_NESTED, value)
}

func padded(data []byte) []byte {
	return append(data, make([]byte, -len(data)&3)...)
}

// parseAttributes returns the attributes by kind; the last one of those that occur more than once.
func parseAttributes(data []byte) (map[uint16][]byte, error) {
	found := map[uint16][]byte{}
	for len(data) >= unix.SizeofNlAttr {
		size := int(binary.NativeEndian.Uint16(data))
		if size < unix.SizeofNlAttr || size > len(data) {
			return nil, errors.New("the kernel's answer has an invalid attribute")
		}
		found[binary.NativeEndian.Uint16(data[2:])&typeMask] = data[unix.SizeofNlAttr:size]
		data = data[min(len(data), (size+3)&^3):]
	}
	return found, nil
}
