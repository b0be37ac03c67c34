package main

import (
	"testing"
	"time"
)

func TestADELDoesNotUseUpTheTimeOfTheOtherInterfaces(t *testing.T) {
	for _, each := range []struct {
		command, setting string
		limit            time.Duration
	}{
		{"DEL", "", 20 * time.Second},
		{"DEL", "3m", 20 * time.Second},
		{"DEL", "200ms", 200 * time.Millisecond},
		{"ADD", "", 110 * time.Second},
		{"ADD", "3m", 3 * time.Minute},
		{"ADD", "-1s", 110 * time.Second},
	} {
		if got := timeLimit(each.command, each.setting); got != each.limit {
			t.Errorf("%s with HOLDFAST_TIMEOUT=%q waits %s", each.command, each.setting, got)
		}
	}
}
