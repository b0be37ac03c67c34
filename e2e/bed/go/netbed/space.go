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

// path is what CNI takes as CNI_NETNS; it is there for as long as the space is.
func (s *space) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.net) }

// newSpace makes a network namespace with lo up. Private mounts, if any, are made by `mounts` on a thread inside.
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

// run acts on a thread inside the space. What it starts there is inside, too; so is a socket that it opens, for ever.
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

// onThread acts on a thread of its own, which ends afterwards: nobody inherits what was done to it.
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

// hold opens a namespace. Numbers are not used again soon: a path to a namespace that is gone must lead nowhere, not into
// somebody else's.
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

// allowIPv6 also finds out whether the plugins will be able to write below /proc/sys/net.
func allowIPv6() error {
	for _, scope := range []string{"all", "default"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+scope+"/disable_ipv6", []byte("0"), 0); err != nil {
			return fmt.Errorf("IPv6: %w", err)
		}
	}
	return nil
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return netlink.LinkSetUp(link)
}
