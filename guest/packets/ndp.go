package main

import "time"

// receiveIPv6 handles a packet that the filter lets through.
func (r *responder) receiveIPv6(now time.Time, from mac, b []byte) {
	if len(b) < 40 || b[0]>>4 != 6 {
		r.drop(dropMalformed)
		return
	}
	if isMLDQuery(b) {
		r.heardQuery(now)
	}
}
