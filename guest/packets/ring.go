package main

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Frames wait in a ring (PACKET_RX_RING) until they are read. The kernel limits the buffer of a socket to
// net.core.rmem_max, which is too little for some hundred guests that boot at once; the ring is not counted. TPACKET_V2 has
// a slot for each frame, and hands it over at once. The blocks of TPACKET_V3 wait for a timer, which also wakes an idle
// responder.
const (
	slotSize  = 2048 // one frame with its header
	blockSize = 64 << 10
	slots     = 4096 // 8 MiB: 2,000 guests at once send about as many frames
)

// checksums says what the kernel knows about that of UDP or ICMPv6 in a frame.
type checksums int

const (
	checksumsUnknown checksums = iota
	checksumsGood              // it is verified, or not computed yet because the frame stays on one machine
)

// ring is the memory that the kernel writes frames to.
type ring struct {
	raw    syscall.RawConn
	memory []byte
	next   int // slot
}

func newRing(raw syscall.RawConn) (*ring, error) {
	made := &ring{raw: raw}
	var failed error
	err := raw.Control(func(fd uintptr) {
		if failed = unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); failed != nil {
			return
		}
		request := unix.TpacketReq{Block_size: blockSize, Block_nr: slots * slotSize / blockSize, Frame_size: slotSize, Frame_nr: slots}
		if failed = setRing(int(fd), &request); failed != nil {
			return
		}
		made.memory, failed = unix.Mmap(int(fd), 0, slots*slotSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("ring of frames: %w", err)
	}
	return made, nil
}

// setRing is setsockopt with a structure that the library has no function for.
func setRing(fd int, request *unix.TpacketReq) error {
	_, _, code := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_PACKET, unix.PACKET_RX_RING,
		uintptr(unsafe.Pointer(request)), unsafe.Sizeof(*request), 0)
	if code != 0 {
		return code
	}
	return nil
}

// receive passes all frames to a function, which must not keep them. It returns when the interface is gone or down.
func (r *ring) receive(take func(frame []byte, sums checksums)) error {
	var failed error
	buffer := make([]byte, maxFrame+1)
	err := r.raw.Read(func(fd uintptr) bool {
		for {
			length, sums, isFrame := r.read(buffer)
			if !isFrame {
				code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
				if failed = err; err == nil && code != 0 {
					failed = syscall.Errno(code)
				}
				return failed != nil // else waits for more
			}
			take(buffer[:length], sums)
		}
	})
	if err == nil {
		err = failed
	}
	return err
}

// read copies the next frame, and gives its slot back to the kernel.
func (r *ring) read(buffer []byte) (length int, sums checksums, isFrame bool) {
	slot := r.memory[r.next*slotSize : (r.next+1)*slotSize]
	header := (*unix.Tpacket2Hdr)(unsafe.Pointer(&slot[0]))
	status := atomic.LoadUint32(&header.Status)
	if status&unix.TP_STATUS_USER == 0 {
		return 0, checksumsUnknown, false
	}
	if status&(unix.TP_STATUS_CSUMNOTREADY|unix.TP_STATUS_CSUM_VALID) != 0 {
		sums = checksumsGood
	}
	begin := int(header.Mac)
	length = copy(buffer, slot[begin:min(begin+int(header.Snaplen), slotSize)])
	atomic.StoreUint32(&header.Status, unix.TP_STATUS_KERNEL)
	r.next = (r.next + 1) % slots
	return length, sums, true
}
