package main

import "time"

const (
	// Of each guest: more than any client sends, little enough that a flood costs nothing.
	guestBurst, guestRate = 20, 5
	// Of all hosts that are not in the table.
	strangerBurst, strangerRate = 200, 100
)

// limiter is a token bucket.
type limiter struct {
	burst, perSecond float64
	tokens           float64
	filledAt         time.Time
}

func newLimiter(burst, perSecond float64) limiter {
	return limiter{burst: burst, perSecond: perSecond, tokens: burst}
}

// allow takes a token, or returns false.
func (l *limiter) allow(now time.Time) bool {
	l.tokens = min(l.burst, l.tokens+l.perSecond*now.Sub(l.filledAt).Seconds())
	l.filledAt = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
