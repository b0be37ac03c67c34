import { expect } from 'chai';
import { parsePage } from './document.js';

describe('The parser of a demo page', () => {
  it('returns sections with their steps, prose and expected output', () => {
    const markdown = [
      '# In no time',
      'Welcome.',
      '## First',
      'A [link](a.md).',
      '',
      'Now `this`',
      'then:',
      '',
      '```sh',
      'kubectl get x',
      '```',
      '```text wire',
      'NAME',
      '```',
      'More.',
      '## Second',
      '```sh done',
      'make image',
      '```',
    ].join('\n');
    const { title, sections } = parsePage(markdown);
    expect(title).to.equal('In no time');
    expect(sections.map((section) => section.title)).to.deep.equal(['First', 'Second']);
    const [first, second] = sections.flatMap(({ steps }) => steps);
    expect(first).to.deep.equal({
      line: 9,
      prose: 'Now this then:',
      commands: [{ text: 'kubectl get x', words: ['kubectl', 'get', 'x'] }],
      run: 'here',
      shown: { lines: ['NAME'], needsWire: true },
    });
    expect(second).to.include({ run: 'done', shown: undefined });
  });

  const faulty = [
    {
      name: 'a block of another kind',
      lines: ['## A', '```yaml', 'a: b', '```'],
      expect: 'line 2: a block of kind "yaml"',
    },
    { name: 'a block that has no end', lines: ['## A', '```sh', 'a'], expect: 'line 2: the block has no end' },
    { name: 'an empty block', lines: ['## A', '```sh', '```'], expect: 'line 2: the block is empty' },
    {
      name: 'an output without a command',
      lines: ['## A', '```text', 'a', '```'],
      expect: 'line 2: an output has no commands',
    },
    { name: 'a block before all sections', lines: ['```sh', 'a', '```'], expect: 'line 1: a block comes before' },
    { name: 'half a command', lines: ['## A', '```sh', 'a |', '```'], expect: 'line 2: "a |"' },
  ];
  for (const { name, lines, expect: message } of faulty) {
    it(`rejects ${name}, and names the line`, () => {
      expect(() => parsePage(lines.join('\n'))).to.throw(message);
    });
  }
});
