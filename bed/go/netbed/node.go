package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

type nodeRequest struct {
	Name string
	// Dir holds run-holdfast and var-lib-cni, which the node sees as /run/holdfast and /var/lib/cni.
	Dir string
	// APIPort of 127.0.0.1 leads to the same port of this process's own namespace; 0: there is no API server.
	APIPort int
}

func (b *bed) addNode(request nodeRequest) (any, error) {
	s, err := newSpace(func() error { return nodeMounts(request.Dir) })
	if err != nil {
		return nil, err
	}
	name := "node/" + request.Name
	if err := b.remember(name, s); err != nil {
		return nil, err
	}
	if request.APIPort != 0 {
		if err := startProxy(s, fmt.Sprintf("127.0.0.1:%d", request.APIPort)); err != nil {
			b.forget(name)
			return nil, err
		}
	}
	b.mutex.Lock()
	b.nodes[request.Name] = &node{joined: map[string]bool{}}
	b.mutex.Unlock()
	return podAnswer{s.path()}, nil
}

// nodeMounts gives the node its own folders, which all nodes on the machine would share otherwise.
func nodeMounts(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for folder, target := range map[string]string{"run-holdfast": "/run/holdfast", "var-lib-cni": "/var/lib/cni"} {
		source := filepath.Join(dir, folder)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		held, err := unix.Open(source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		defer unix.Close(held)
		if err := makeRoom(target); err != nil {
			return fmt.Errorf("a place for %s: %w", target, err)
		}
		if err := bind(held, target); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom creates a mount point without a change of the machine's disk. A tmpfs replaces the parent folder, and contains its
// entries and the new one.
func makeRoom(target string) error {
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(target))
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(above)
	if err != nil {
		return err
	}
	before, err := unix.Open(above, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(before)
	if err := unix.Mount("tmpfs", above, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := showAgain(before, above, entry); err != nil {
			return err
		}
	}
	return os.Mkdir(target, 0o755)
}

// showAgain makes an entry of a folder that was mounted over visible again. Entries other than folders, files, links and sockets
// are ignored, because plugins do not need them.
func showAgain(before int, above string, entry os.DirEntry) error {
	path := filepath.Join(above, entry.Name())
	if entry.Type()&os.ModeSymlink != 0 {
		target := make([]byte, unix.PathMax)
		length, err := unix.Readlinkat(before, entry.Name(), target)
		if err != nil {
			return nil // gone in the meantime
		}
		return os.Symlink(string(target[:length]), path)
	}
	held, err := unix.Openat(before, entry.Name(), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(held)
	if entry.IsDir() {
		err = os.Mkdir(path, 0o755)
	} else {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil {
		return err
	}
	return bind(held, path)
}

func bind(held int, target string) error {
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", held), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind mount at %s: %w", target, err)
	}
	return nil
}

// startProxy listens inside the namespace and connects outside of it.
func startProxy(s *space, address string) error {
	var listener net.Listener
	err := s.run(func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		return fmt.Errorf("listen on %s inside %s: %w", address, s.path(), err)
	}
	go func() {
		for {
			if inside, err := listener.Accept(); err == nil {
				go carry(inside, address)
			}
		}
	}()
	return nil
}

func carry(inside net.Conn, address string) {
	defer inside.Close()
	outside, err := net.Dial("tcp", address)
	if err != nil {
		return // as if nobody listened
	}
	defer outside.Close()
	go func() {
		_, _ = io.Copy(outside, inside)
		_ = outside.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(inside, outside)
}
