package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// A guest that boots misses the signal, so KubeVirt repeats it as often.
	shutdownInterval = 5 * time.Second
	// Of virtual machines that do not say it: DefaultGracePeriodSeconds of KubeVirt.
	defaultGraceSeconds = 30
	answerTimeout       = 5 * time.Second
)

// shutDown asks the guest by ACPI to shut down, as virt-handler does, until its grace period is over. It returns only then.
func shutDown(graceSeconds *int64) error {
	grace := time.Duration(defaultGraceSeconds)
	if graceSeconds != nil {
		grace = time.Duration(*graceSeconds)
	}
	expired := time.After(grace * time.Second)
	for {
		if err := pressPower(); err != nil {
			fmt.Println(err)
		}
		select {
		case <-expired:
			return errors.New("the guest did not shut down within its grace period")
		case <-time.After(shutdownInterval):
		}
	}
}

// pressPower presses the power button of a guest that runs here. QEMU ends at once if the guest has left, or has not come.
func pressPower() error {
	answer, err := askQemu("query-status")
	if err != nil {
		return err
	}
	var status struct{ Running bool }
	if err := json.Unmarshal(answer, &status); err != nil {
		return err
	}
	command := "quit"
	if status.Running {
		command = "system_powerdown"
	}
	_, err = askQemu(command)
	return err
}

func askQemu(command string) (json.RawMessage, error) {
	connection, err := net.DialTimeout("unix", private+"qmp", answerTimeout)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(connection)
	var returned json.RawMessage
	for _, each := range []string{"qmp_capabilities", command} {
		if _, err := fmt.Fprintf(connection, `{"execute":%q}`, each); err != nil {
			return nil, err
		}
		if returned, err = readAnswer(decoder); err != nil {
			return nil, fmt.Errorf("%s: %w", each, err)
		}
	}
	return returned, nil
}

// readAnswer skips the greeting and events.
func readAnswer(decoder *json.Decoder) (json.RawMessage, error) {
	for {
		var answer struct {
			Return json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := decoder.Decode(&answer); err != nil {
			return nil, err
		}
		if answer.Error != nil {
			return nil, errors.New(answer.Error.Desc)
		}
		if answer.Return != nil {
			return answer.Return, nil
		}
	}
}
