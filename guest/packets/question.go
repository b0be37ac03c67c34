package main

import (
	"net/netip"
	"slices"
	"time"
)

// The process "responder" asks which hosts have an address before a guest gets it.

const questionTries = 3

// openQuestion is a question that is not answered yet.
type openQuestion struct {
	question
	tries    int
	nextAt   time.Time
	heard    []mac
	isUnsent bool // a part of it: silence says nothing
}

func (r *responder) startQuestion(now time.Time, asked question) {
	if len(r.questions) >= maxQuestions {
		r.drop(dropQuestions)
		return
	}
	r.questions = append(r.questions, &openQuestion{question: asked, nextAt: now})
	if !r.isQuiet {
		r.proceedQuestions(now)
	}
}

// proceedQuestions sends the questions that are due, and reports those that are answered.
func (r *responder) proceedQuestions(now time.Time) {
	r.questions = slices.DeleteFunc(r.questions, func(each *openQuestion) bool {
		switch {
		case now.Before(each.nextAt):
			return false
		case each.tries < questionTries:
			each.tries++
			each.nextAt = now.Add(time.Duration(each.ForMs) * time.Millisecond / questionTries)
			each.isUnsent = !r.ask(each.Address) || each.isUnsent
			r.after(each.nextAt.Sub(now), r.wakeQuestions)
			return false
		case !each.isUnsent:
			r.reportAnswer(each)
		}
		return true
	})
}

func (r *responder) wakeQuestions(now time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.isQuiet {
		r.proceedQuestions(now)
	}
}

// heardAnswer takes note of a host that has an address, or itself asks whether another host has it.
func (r *responder) heardAnswer(from mac, address netip.Addr) {
	r.questions = slices.DeleteFunc(r.questions, func(each *openQuestion) bool {
		switch {
		case each.Address != address || slices.Contains(each.heard, from):
			return false
		case slices.Contains(each.Expect, from):
			each.heard = append(each.heard, from)
			return false
		}
		each.heard = []mac{from}
		r.reportAnswer(each)
		return true
	})
}

func (r *responder) reportAnswer(to *openQuestion) {
	r.report(report{Probed: &probed{to.ID, append([]mac{}, to.heard...)}})
}
