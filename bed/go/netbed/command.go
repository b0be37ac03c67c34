package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A runtime has a timeout for plugins, too.
const commandLimit = 2 * time.Minute

type commandRequest struct {
	In      string
	Command string
	Args    []string
	// Env is the whole environment of the command.
	Env   map[string]string
	Stdin string
}

type commandAnswer struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// runCommand runs a program, such as a CNI plugin, inside a space.
func (b *bed) runCommand(request commandRequest) (any, error) {
	s, err := b.find(request.In)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	command := commandOf(ctx, request)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.WaitDelay = time.Second
	err = s.run(command.Run)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w", request.Command, err)
	}
	return commandAnswer{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}

func commandOf(ctx context.Context, request commandRequest) *exec.Cmd {
	command := exec.CommandContext(ctx, request.Command, request.Args...)
	command.Env = []string{}
	for name, value := range request.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdin = strings.NewReader(request.Stdin)
	// The signal is sent when the thread ends, which waits for the command.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}
