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
	command := exec.CommandContext(ctx, request.Command, request.Args...)
	command.Env = []string{}
	for name, value := range request.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(request.Stdin), &stdout, &stderr
	// The signal is sent when the thread ends, which waits for the command.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.WaitDelay = time.Second
	err = s.run(command.Run)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w", request.Command, err)
	}
	return commandAnswer{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}
