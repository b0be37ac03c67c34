// Command nothing does nothing: its start is the least that a CNI plugin can cost.
package main

func main() {}
