package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// responder answers frames from the table. It decides nothing: which guest, address, option and time comes from the
// process "responder". The time is a parameter, so that tests need not wait.
type responder struct {
	mutex   sync.Mutex
	open    func(name string) (link, error)
	report  func(report) // to the newest connection, if there is one
	config  *config
	link    link
	isQuiet bool // the interface has an address of the kernel
	table   *table
	session uint64                // the number of the newest connection
	options map[string]*optionSet // of the newest connection
}

// link is the interface on which the guests are.
type link interface {
	mac() mac
	hasAddress() (bool, error)
}

func newResponder(open func(name string) (link, error), send func(report)) *responder {
	return &responder{open: open, report: send, table: newTable(), options: map[string]*optionSet{}}
}

// connected returns the number of a new connection. Older ones can no longer give commands.
func (r *responder) connected() uint64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.session++
	r.options = map[string]*optionSet{}
	r.table.isSnapshot = false
	return r.session
}

var errReplaced = errors.New("a newer connection replaced this one")

// obey carries out a command. An error ends the connection.
func (r *responder) obey(now time.Time, session uint64, c *command) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if session != r.session {
		return errReplaced
	}
	if c.Config != nil {
		return r.configure(c.Config)
	}
	switch {
	case r.config == nil:
		return errors.New("the first command is not config")
	case c.Options != nil:
		if _, exists := r.options[c.Options.ID]; !exists && len(r.options) >= maxOptionSets {
			return fmt.Errorf("more than %d sets of options", maxOptionSets)
		}
		r.options[c.Options.ID] = c.Options
	case c.Put != nil:
		for _, each := range c.Put {
			options := r.options[each.Options]
			if options == nil {
				return fmt.Errorf("entry %s names options %q, which were not sent", each.MAC, each.Options)
			}
			if err := r.table.put(now, each, options); err != nil {
				return err
			}
		}
	case c.Remove != nil:
		for _, each := range c.Remove {
			r.table.remove(each)
		}
	case c.Snapshot == "begin":
		r.table.begin()
	case c.Snapshot == "end":
		return r.table.end()
	default:
		r.table.setFresh(now, time.Duration(c.Fresh.ForMs)*time.Millisecond)
	}
	return nil
}

func (r *responder) configure(to *config) error {
	if r.link == nil {
		opened, err := r.open(to.Interface)
		if err != nil {
			return fmt.Errorf("interface %s: %w", to.Interface, err)
		}
		r.link = opened
	} else if to.Interface != r.config.Interface {
		return fmt.Errorf("the interface changed from %s to %s: restart the pod", r.config.Interface, to.Interface)
	}
	hasAddress, err := r.link.hasAddress()
	if err != nil {
		return fmt.Errorf("addresses of interface %s: %w", to.Interface, err)
	}
	r.config, r.isQuiet = to, hasAddress
	r.report(report{Hello: &hello{Version: protocolVersion, MAC: r.link.mac(), Address: hasAddress}})
	return nil
}
