import { expect } from 'chai';
import { commandsOf } from './shell.js';

describe('The parser of a block of commands', () => {
  it('returns the words of each line, without quotes, comments and empty lines', () => {
    const [one, two, ...more] = commandsOf([
      '# a comment',
      `kubectl get x -o jsonpath='{.a b}'  "c d"`,
      '',
      'virtctl start web',
    ]);
    expect(one?.words).to.deep.equal(['kubectl', 'get', 'x', '-o', 'jsonpath={.a b}', 'c d']);
    expect(two?.words).to.deep.equal(['virtctl', 'start', 'web']);
    expect(more).to.deep.equal([]);
  });

  it('returns here-documents as input', () => {
    expect(commandsOf(["kubectl apply -f - <<'EOF'", 'a: $b', 'EOF', 'kubectl get x'])).to.deep.equal([
      { text: 'kubectl apply -f -', words: ['kubectl', 'apply', '-f', '-'], input: 'a: $b\n' },
      { text: 'kubectl get x', words: ['kubectl', 'get', 'x'] },
    ]);
  });

  const refused = ['kubectl get x | grep y', 'a && b', 'echo $HOME', 'ls *', 'cat > x', `kubectl get 'x`, 'cat <<EOF'];
  for (const line of refused) {
    it(`rejects shell syntax that it does not support: ${line}`, () => {
      expect(() => commandsOf([line])).to.throw(line.replace(' <<EOF', ''));
    });
  }
});
