package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process that ignores SIGTERM is killed after this time.
const terminationLimit = 2 * time.Second

type startRequest struct {
	ID int
	commandRequest
	// Mounts "private": the process may write to /run and /var/lib, which are empty and vanish with it. The rest of the machine is
	// read-only, and /sys shows the space.
	Mounts string
}

type outputEvent struct {
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
}

type exitAnswer struct {
	// ExitCode is -1 after a signal.
	ExitCode int `json:"exitCode"`
}

// start runs a program inside a space until it ends, or is stopped with SIGTERM. Its output is sent as events. It ends with its space.
func (b *bed) start(ctx context.Context, request startRequest, emit emit) (any, error) {
	s, err := b.find(request.In)
	if err != nil {
		return nil, err
	}
	command := commandOf(ctx, request.commandRequest)
	command.Stdout = writer(func(text string) { emit(outputEvent{Stdout: text}) })
	command.Stderr = writer(func(text string) { emit(outputEvent{Stderr: text}) })
	command.SysProcAttr.Setpgid = true
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = terminationLimit
	err = s.run(func() error {
		if request.Mounts == "private" {
			if err := privateMounts(); err != nil {
				return err
			}
		}
		if err := command.Start(); err != nil {
			return err
		}
		end := b.enlist(request.ID, &process{request.In, command.Process.Pid})
		defer end()
		emit("started")
		return command.Wait()
	})
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return nil, fmt.Errorf("%s: %w", request.Command, err)
	}
	return exitAnswer{command.ProcessState.ExitCode()}, nil
}

type writer func(text string)

func (w writer) Write(text []byte) (int, error) {
	w(string(text))
	return len(text), nil
}

// process is the leader of a process group.
type process struct {
	space string
	pid   int
}

func (p *process) signal(signal syscall.Signal) error { return syscall.Kill(-p.pid, signal) }

// enlist makes a process known by the id of its request. The result kills what is left of its group.
func (b *bed) enlist(id int, p *process) (end func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.processes[id] = p
	return func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		delete(b.processes, id)
		_ = p.signal(syscall.SIGKILL)
	}
}

type signalRequest struct {
	Request int
	// Signal is a name such as SIGUSR1.
	Signal string
}

func (b *bed) signal(request signalRequest) (any, error) {
	signal := unix.SignalNum(request.Signal)
	if signal == 0 {
		return nil, fmt.Errorf("there is no signal %q", request.Signal)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	p := b.processes[request.Request]
	if p == nil {
		return nil, errors.New("the process has ended")
	}
	return done{}, p.signal(signal)
}

// privateMounts gives the processes of this thread their own folders for what they write, as services have it in a guest.
func privateMounts() error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a new mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("a read-only root: %w", err)
	}
	for _, folder := range []string{"/run", "/var/lib"} {
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("a private %s: %w", folder, err)
		}
	}
	// udev does not run in a guest of the bed: services must not wait for it, and they do not where /sys is read-only.
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("a private /sys: %w", err)
	}
	return nil
}
