// Answers DHCP and router solicitations of guests, from a table that the process "responder" sends.
module holdfast.dev/guest/packets

go 1.24.0
