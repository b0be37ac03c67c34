import { expect } from 'chai';
import { parsePage } from './document.js';

describe('a page that is followed', () => {
  it('has sections, and steps with what is said and shown about them', () => {
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
    { name: 'a block of another kind', lines: ['## A', '```yaml', 'a: b', '```'], expect: 'line 2: a block "yaml"' },
    { name: 'a block that has no end', lines: ['## A', '```sh', 'a'], expect: 'line 2: the block has no end' },
    { name: 'an empty block', lines: ['## A', '```sh', '```'], expect: 'line 2: the block is empty' },
    {
      name: 'something shown without a command',
      lines: ['## A', '```text', 'a', '```'],
      expect: 'line 2: no commands',
    },
    { name: 'a block before all sections', lines: ['```sh', 'a', '```'], expect: 'line 1: a block stands before' },
    { name: 'half a command', lines: ['## A', '```sh', 'a |', '```'], expect: 'line 2: "a |"' },
  ];
  for (const { name, lines, expect: complaint } of faulty) {
    it(`has no ${name}`, () => {
      expect(() => parsePage(lines.join('\n'))).to.throw(complaint);
    });
  }
});
