package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// space is a network namespace, and for nodes a mount namespace too. Only the descriptors here keep it alive.
type space struct {
	net   int
	mount int // -1: the one of this process
}

// path returns the value for CNI_NETNS, which is valid as long as the space exists.
func (s *space) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.net) }

// newSpace creates a network namespace with lo up. The function mounts, if any, creates private mounts on a thread inside.
func newSpace(mounts func() error) (*space, error) {
	s := &space{mount: -1}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("a new network namespace: %w", err)
		}
		var err error
		if s.net, err = hold("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		if err := allowIPv6(); err != nil {
			return err
		}
		if mounts == nil {
			return nil
		}
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("a new mount namespace: %w", err)
		}
		if err := mounts(); err != nil {
			return err
		}
		s.mount, err = hold("/proc/thread-self/ns/mnt")
		return err
	})
	if err == nil {
		err = s.run(func() error { return up("lo") })
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *space) close() {
	for _, fd := range []int{s.net, s.mount} {
		if fd > 0 {
			_ = unix.Close(fd)
		}
	}
}

// run calls act on a thread inside the space. Processes and sockets that it creates stay inside.
func (s *space) run(act func() error) error {
	return onThread(func() error {
		if err := unix.Setns(s.net, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter %s: %w", s.path(), err)
		}
		if s.mount >= 0 {
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return err
			}
			if err := unix.Setns(s.mount, unix.CLONE_NEWNS); err != nil {
				return fmt.Errorf("enter the mounts of %s: %w", s.path(), err)
			}
		}
		return act()
	})
}

// onThread calls act on a separate thread, which ends afterwards, so that no other code inherits its state.
func onThread(act func() error) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		ended <- act()
	}()
	return <-ended
}

const firstDescriptor, lastDescriptor = 1000, 15000

var (
	descriptors    sync.Mutex
	nextDescriptor = firstDescriptor
)

// hold opens a namespace. Descriptors are not reused soon, because a path to a removed namespace must be invalid and not lead to
// another one.
func hold(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	descriptors.Lock()
	defer descriptors.Unlock()
	if nextDescriptor > lastDescriptor {
		nextDescriptor = firstDescriptor
	}
	held, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, nextDescriptor)
	if err != nil {
		return 0, fmt.Errorf("hold %s: %w", path, err)
	}
	nextDescriptor = held + 1
	return held, nil
}

// allowIPv6 also checks whether plugins can write below /proc/sys/net.
func allowIPv6() error {
	for _, scope := range []string{"all", "default"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+scope+"/disable_ipv6", []byte("0"), 0); err != nil {
			return fmt.Errorf("IPv6: %w", err)
		}
	}
	return nil
}

func disableIPv6(name string) error {
	return os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return netlink.LinkSetUp(link)
}
