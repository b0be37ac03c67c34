// Answers DHCP and router solicitations of guests, from a table that the process "responder" sends.
module holdfast.dev/guest/packets

go 1.24.0

require (
	github.com/insomniacslk/dhcp v0.0.0-20250417080101-5f8cf70e8c5f
	github.com/mdlayher/ndp v1.1.0
	github.com/mdlayher/packet v1.1.2
	golang.org/x/net v0.38.0
	golang.org/x/sys v0.31.0
)

require (
	github.com/josharian/native v1.1.0 // indirect
	github.com/mdlayher/socket v0.4.1 // indirect
	github.com/pierrec/lz4/v4 v4.1.14 // indirect
	github.com/u-root/uio v0.0.0-20230220225925-ffce2a382923 // indirect
	golang.org/x/sync v0.12.0 // indirect
	golang.org/x/text v0.23.0 // indirect
)
