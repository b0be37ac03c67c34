import { expect } from 'chai';
import { OutputMatcher } from './output-matcher.js';

describe('Matching the output of a command with the page', () => {
  const table = ['NAME              ADDRESS      NODE     AGE', 'blue.10-1-0-5     10.1.0.5     node-1   21s'];

  it('ignores spaces, ages, and the names that differ between clusters', () => {
    const lexicon = new OutputMatcher();
    expect(lexicon.matches(table, ['NAME ADDRESS NODE AGE', 'blue.10-1-0-77 10.1.0.77 worker.example 2m3s'])).to.equal(
      true,
    );
    expect(lexicon.substitute('kubectl get alease blue.10-1-0-5; ping 10.1.0.5 from node-1, not 10.1.0.6')).to.equal(
      'kubectl get alease blue.10-1-0-77; ping 10.1.0.77 from worker.example, not 10.1.0.6',
    );
  });

  const differing = [
    { name: 'a word differs', seen: ['NAME ADDRESS NODE AGE', 'green.10-1-0-5 10.1.0.5 node-1 3s'] },
    { name: 'a line is missing', seen: ['NAME ADDRESS NODE AGE'] },
    { name: 'there is a line more', seen: [...table, 'blue.10-1-0-6 10.1.0.6 node-1 3s'] },
    { name: 'a column is empty', seen: ['NAME ADDRESS NODE AGE', 'blue.10-1-0-5 10.1.0.5 3s'] },
    { name: 'one name means two things', seen: ['NAME ADDRESS NODE AGE', 'blue.10-1-0-5 10.1.0.6 node-1 3s'] },
  ];
  for (const { name, seen } of differing) {
    it(`fails if ${name}`, () => {
      expect(new OutputMatcher().matches(table, seen)).to.equal(false);
    });
  }

  it('fails if a known name has another value, or if two names have the same value', () => {
    const lexicon = new OutputMatcher();
    expect(lexicon.matches(['web 10.1.0.5'], ['web 10.1.0.9'])).to.equal(true);
    expect(lexicon.matches(['web 10.1.0.5'], ['web 10.1.0.8'])).to.equal(false);
    expect(lexicon.matches(['more 10.1.0.6'], ['more 10.1.0.9'])).to.equal(false);
    expect(lexicon.matches(['more 10.1.0.6'], ['more 10.1.0.8'])).to.equal(true);
  });

  it('accepts lines in any order, and remembers no names from lines that do not match', () => {
    const lexicon = new OutputMatcher();
    expect(lexicon.matches(['10.1.0.5 web', '10.1.0.6 10.1.0.5'], ['10.1.0.9 10.1.0.8', '10.1.0.8 web'])).to.equal(
      true,
    );
    expect(lexicon.substitute('10.1.0.5 10.1.0.6')).to.equal('10.1.0.8 10.1.0.9');
  });

  it('accepts any lines or words in the place of …', () => {
    const lexicon = new OutputMatcher();
    expect(lexicon.matches(['web … 5'], ['web anything 5'])).to.equal(true);
    expect(lexicon.matches(['web … 5'], ['web 5'])).to.equal(false);
    expect(lexicon.matches(['…', '3 packets, 0% lost'], ['PING', '3 packets, 0% lost', 'rtt 0.1/0.2 ms'])).to.equal(
      true,
    );
    expect(lexicon.matches(['…', '3 packets, 0% lost'], ['PING', '3 packets, 50% lost'])).to.equal(false);
  });
});
